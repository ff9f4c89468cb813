import CLinux
import CRUDThreads
import Glibc
import Testing

@testable import CRUDEventLoop

/// A listening Unix socket at an address of its own in the abstract namespace, with the connections it has accepted.
private final class Reception: ListenerHandler {
    private var address = sockaddr_un()
    private var addressSize: socklen_t = 0
    let descriptor: CInt
    private(set) var guests: [Peer] = []
    private(set) var rejected = 0
    var onAccepted: (Listener) -> Void = { _ in }

    init() throws {
        descriptor = Self.socket()
        // An address without a name makes the kernel choose a unique one.
        address.sun_family = sa_family_t(AF_UNIX)
        let familySize = socklen_t(MemoryLayout<sa_family_t>.size)
        guard withAddress({ bind(descriptor, $0, familySize) }) == 0, listen(descriptor, 512) == 0 else {
            throw SystemCallError("bind")
        }
        addressSize = socklen_t(MemoryLayout<sockaddr_un>.size)
        var size = addressSize
        _ = withAddress { getsockname(descriptor, $0, &size) }
        addressSize = size
    }

    private static func socket() -> CInt {
        Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private func withAddress(_ body: (UnsafeMutablePointer<sockaddr>) -> CInt) -> CInt {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0) }
        }
    }

    func connect() throws -> Peer {
        let socket = Self.socket()
        guard withAddress({ Glibc.connect(socket, $0, addressSize) }) == 0 else { throw SystemCallError("connect") }
        return Peer(socket)
    }

    func accepted(_ descriptor: CInt, by listener: Listener) {
        guests.append(Peer(descriptor))
        onAccepted(listener)
    }

    func rejected(_ descriptor: CInt, by listener: Listener) {
        rejected += 1
        send(descriptor, "full", 4, CInt(MSG_NOSIGNAL))
    }
}

@Suite struct ListenerTests {
    @Test func acceptsAllButNotInOneIteration() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let reception = try Reception()
        _ = try Listener(reception.descriptor, on: test.loop, handler: reception)
        let callers = try (0..<100).map { _ in try reception.connect() }
        try test.iterate()
        #expect(reception.guests.count == 64)
        try test.iterate { reception.guests.count == callers.count }
        for (caller, guest) in zip(callers, reception.guests) {
            caller.send("hello")
            #expect(guest.text == "hello")
        }
    }

    @Test func servesWhatItHasAccepted() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let reception = try Reception()
        let listener = try Listener(reception.descriptor, on: test.loop, handler: reception)
        let handler = Recorder()
        reception.onAccepted = { listener in
            // A descriptor that the stream may close.
            let copy = dup(reception.guests[0].descriptor)
            #expect(throws: Never.self) { try Stream(copy, on: listener.loop, handler: handler) }
        }
        let caller = try reception.connect()
        caller.send("hello")
        try test.iterate { handler.text == "hello" }
        #expect(listener.descriptor == reception.descriptor)
    }

    @Test func acceptsNobodyOnceClosed() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let reception = try Reception()
        _ = try Listener(reception.descriptor, on: test.loop, handler: reception)
        reception.onAccepted = { $0.close() }
        let callers = try (0..<2).map { _ in try reception.connect() }
        #expect(try test.iterateUntilIdle() <= 3)
        #expect(reception.guests.count == 1)
        // The kernel closes the one in the queue.
        callers[1].receive()
        #expect(callers[1].hasReachedEnd)
        #expect(throws: SystemCallError.self) { try reception.connect() }
    }

    /// The descriptors are used up in a table that belongs to this test's thread alone. The limit is the process's, but
    /// other tests do not come near it.
    @Test func rejectsConnectionsWhenThereAreNoDescriptorsLeft() throws {
        let thread = try Thread(named: "descriptors") {
            #expect(throws: Never.self) { try Self.useUpDescriptors() }
        }
        thread.join()
    }

    private static func useUpDescriptors() throws {
        guard clinux_unshare_descriptors() == 0 else { throw SystemCallError("unshare") }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let before = limit
        limit.rlim_cur = min(limit.rlim_cur, 1000)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        defer {
            var before = before
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
        }

        let test = try TestLoop()
        defer { test.finish() }
        let reception = try Reception()
        _ = try Listener(reception.descriptor, on: test.loop, handler: reception)
        let callers = try (0..<5).map { _ in try reception.connect() }
        var fillers: [CInt] = []
        while case let filler = dup(0), filler >= 0 { fillers.append(filler) }
        #expect(errno == EMFILE)

        // One descriptor is left: one connection is accepted, the others are rejected.
        close(fillers.removeLast())
        try test.iterate { reception.rejected == callers.count - 1 }
        #expect(reception.guests.count == 1)
        for caller in callers.dropFirst() {
            #expect(caller.text == "full")
            #expect(caller.hasReachedEnd)
        }
        #expect(try test.iterateUntilIdle() <= 3)

        // The reserve is back, and so is everything else once descriptors are.
        for filler in fillers { close(filler) }
        let late = try reception.connect()
        try test.iterate { reception.guests.count == 2 }
        late.send("hello")
        #expect(reception.guests[1].text == "hello")
    }
}
