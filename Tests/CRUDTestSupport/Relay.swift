import CLinux
import Glibc
import Synchronization

/// Stands between a backend and its server, knows what the backend sends, and can end connections at the moment that a
/// test wants.
package final class Relay: Sendable {
    /// When the connection ends on which it comes about, but for the last two.
    package enum Fault: Sendable {
        /// A transaction has been committed, and its client has not been told.
        case afterCommit
        /// As ``afterCommit``, and on each connection that has raised the number of the lease, until told otherwise.
        case afterCommitAndAdvance
        /// Statements have been sent, and the server has not got them.
        case beforeStatements
        /// Nothing that is sent arrives from a statement on that contains this.
        case holdFrom(String)
        /// The server warns of each update of one row that it commits, until told otherwise, as one does that has lost
        /// another one of its cluster.
        case warning(String)
    }

    package let directory: TemporaryDirectory
    private let listener: Descriptor
    private let server: String
    private let fault = Mutex<Fault?>(nil)
    private let network = Mutex(Network())
    private let sent = Mutex<(texts: [String], groups: Int)>(([], 0))
    private let stop: (read: Descriptor, write: Descriptor)

    /// What has been sent and has not arrived.
    private struct Network {
        var isHolding = false
        /// Whether what is held on connections that are open arrives now.
        var deliversHeld = false
        /// Whether all connections end now.
        var cuts = false
        /// Of connections that their clients have given up.
        var held: [(server: Descriptor, bytes: [UInt8])] = []
    }

    package init(to server: PostgreSQLServer) throws {
        directory = try TemporaryDirectory()
        self.server = "\(server.directory.path)/.s.PGSQL.\(server.port)"
        listener = try Descriptor.listener(at: "\(directory.path)/.s.PGSQL.5432")
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Failure.system("socketpair")
        }
        stop = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { relay in
                // Retained below.
                Unmanaged<Relay>.fromOpaque(relay!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    package var connection: String { "host=\(directory.path) dbname=postgres user=crudd" }

    /// Has the next transaction that is committed come to grief; the connections that follow work.
    ///
    /// - Parameter fault: nil: none, also of those that have not come about.
    package func inject(_ fault: Fault?) { self.fault.withLock { $0 = fault } }

    /// From now on nothing that is sent arrives.
    package func hold() { network.withLock { $0.isHolding = true } }

    /// What is sent from now on, on connections of which nothing was held, arrives.
    package func letPass() { network.withLock { $0.isHolding = false } }

    /// What is sent arrives again, and first what was held on connections that are open.
    package func deliver() {
        network.withLock { ($0.isHolding, $0.deliversHeld) = (false, true) }
        wake()
    }

    /// Ends all connections; later ones work.
    package func cut() {
        network.withLock { $0.cuts = true }
        wake()
    }

    private func wake() { _ = "x".withCString { send(stop.write.number, $0, 1, Int32(MSG_NOSIGNAL)) } }

    /// Has arrive what was held of connections that their clients have given up, and waits until it has been executed.
    package func release() throws {
        for (server, bytes) in network.withLock({ $0.held }) {
            _ = bytes.withUnsafeBytes { send(server.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            shutdown(server.number, Int32(SHUT_WR))
            let deadline = Deadline()
            var reply = [UInt8](repeating: 0, count: 4096)
            repeat {
                guard try Descriptor.wait(for: [(server.number, POLLIN)], until: deadline)[0] != 0 else {
                    throw Failure("the server does not end a connection")
                }
            } while recv(server.number, &reply, reply.count, 0) > 0
        }
    }

    /// The texts of all statements so far.
    package var statements: [String] { sent.withLock { $0.texts } }

    /// How often somebody has waited for the server, apart from the keeper of the lease.
    package var roundTrips: Int { sent.withLock { $0.groups } }

    /// Ends the thread, and all connections.
    package func end() { shutdown(stop.write.number, Int32(SHUT_RDWR)) }

    private struct Pair {
        let client: Descriptor
        let server: Descriptor
        var messages = ClientMessages()
        var hasAdvancedLease = false
        var held: [UInt8] = []
    }

    private func run() {
        var pairs: [Pair] = []
        while true {
            let interests =
                [(stop.read.number, POLLIN), (listener.number, POLLIN)]
                + pairs.flatMap { [($0.client.number, POLLIN), ($0.server.number, POLLIN)] }
            guard let events = try? Descriptor.wait(for: interests, until: Deadline(.seconds(60))) else { return }
            if events[0] != 0 {
                if obey(&pairs) { continue }
                return
            }
            if events[1] != 0, let pair = try? accept() { pairs.append(pair) }
            var open: [Pair] = []
            for (index, var pair) in pairs.enumerated() where 2 * index + 3 < events.count {
                let isOpen =
                    (events[2 * index + 2] == 0
                        || forward(pair.client, pair.server, isReply: false, &pair))
                    && (events[2 * index + 3] == 0 || forward(pair.server, pair.client, isReply: true, &pair))
                if isOpen { open.append(pair) }
            }
            pairs = open + pairs.dropFirst((events.count - 2) / 2)
        }
    }

    /// - Returns: false when the thread is to end.
    private func obey(_ pairs: inout [Pair]) -> Bool {
        var signals = [UInt8](repeating: 0, count: 64)
        guard recv(stop.read.number, &signals, signals.count, 0) > 0 else { return false }
        let (delivers, cuts) = network.withLock { network in
            defer { (network.deliversHeld, network.cuts) = (false, false) }
            return (network.deliversHeld, network.cuts)
        }
        // With their descriptors they end.
        if cuts { pairs.removeAll() }
        if delivers {
            for index in pairs.indices {
                note(pairs[index].held[...], &pairs[index])
                _ = Self.pass(pairs[index].held[...], to: pairs[index].server)
                pairs[index].held = []
            }
        }
        return true
    }

    private func accept() throws -> Pair {
        let number = Glibc.accept(listener.number, nil, nil)
        guard number >= 0 else { throw Failure.system("accept") }
        let client = Descriptor(owning: number)
        let connection = try Descriptor.streamSocket()
        let outcome = try UnixAddress.with(server) { connect(connection.number, $0, $1) }
        guard outcome == 0 else { throw Failure.system("connect") }
        return Pair(client: client, server: connection)
    }

    private func note(_ bytes: ArraySlice<UInt8>, _ pair: inout Pair) {
        pair.messages.take(bytes)
        let (texts, groups) = (pair.messages.texts, pair.messages.groups)
        if texts.contains(where: { $0.contains("fence = fence + 1") }) { pair.hasAdvancedLease = true }
        sent.withLock { sent in
            sent.texts += texts
            sent.groups += groups
        }
        (pair.messages.texts, pair.messages.groups) = ([], 0)
    }

    /// Whether the connection ends instead of passing on `bytes`.
    private func strikes(_ bytes: ArraySlice<UInt8>, isReply: Bool, _ pair: Pair) -> Bool {
        fault.withLock { fault in
            // The completion of the statement, or the name of a prepared one.
            func has(_ sign: String) -> Bool { String(decoding: bytes, as: UTF8.self).contains(sign) }
            switch fault {
            case .afterCommit? where isReply && has("COMMIT"), .beforeStatements? where !isReply && has("\0crudd_"):
                fault = nil
                return true
            case .afterCommitAndAdvance?: return isReply && (pair.hasAdvancedLease || has("COMMIT"))
            default: return false
            }
        }
    }

    /// Whether `bytes` are the first that do not arrive.
    private func beginsToHold(_ bytes: ArraySlice<UInt8>) -> Bool {
        fault.withLock { fault in
            guard case .holdFrom(let text)? = fault, String(decoding: bytes, as: UTF8.self).contains(text) else {
                return false
            }
            fault = nil
            return true
        }
    }

    /// What the client gets of a reply.
    private func warned(_ reply: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let completion = [UInt8(ascii: "C"), 0, 0, 0, 13] + Array("UPDATE 1\0".utf8)
        guard case .warning(let text)? = fault.withLock(\.self), let place = reply.firstRange(of: completion) else {
            return reply
        }
        let fields = Array("SWARNING\0VWARNING\0C01000\0M\(text)\0\0".utf8)
        var warned = Array(reply[..<place.lowerBound]) + [UInt8(ascii: "N")]
        withUnsafeBytes(of: UInt32(fields.count + 4).bigEndian) { warned += $0 }
        warned += fields
        warned += reply[place.lowerBound...]
        return warned[...]
    }

    /// Passes on what has come; false when the connection is to end.
    private func forward(
        _ source: Descriptor, _ target: Descriptor, isReply: Bool, _ pair: inout Pair
    ) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(source.number, &bytes, bytes.count, 0)
        guard count > 0 else {
            if !isReply, !pair.held.isEmpty {
                let held = (pair.server, pair.held)
                network.withLock { $0.held.append(held) }
            }
            return false
        }
        let rest = isReply ? warned(bytes[..<count]) : bytes[..<count]
        if !isReply, beginsToHold(rest) { hold() }
        if !isReply, !pair.held.isEmpty || network.withLock({ $0.isHolding }) {
            pair.held += rest
            return true
        }
        if strikes(rest, isReply: isReply, pair) { return false }
        if !isReply { note(rest, &pair) }
        return Self.pass(rest, to: target)
    }

    private static func pass(_ bytes: ArraySlice<UInt8>, to target: Descriptor) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                send(target.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }
}
