import CRUDThreads
import Glibc
import Testing

@testable import CRUDPluginHost

/// Frames on their way through a socket.
@Suite struct FramedSocketTests {
    /// Frames that come one right after the other are told apart, however they are cut up on the way.
    @Test(arguments: [1, 3, 4, 5, 4096, 70_000, .max])
    func comeOneAfterTheOther(piece: Int) throws {
        let pair = try Pair()
        let sizes = [0, 1, 0, 0, 5, 60_000, 3, 65_532, 2, 70_000, 100, 1]
        let bytes = sizes.flatMap(Pair.frame)
        let writer = try Thread(named: "writer") {
            var rest = bytes[...]
            while !rest.isEmpty, pair.send(rest.prefix(piece)) { rest = rest.dropFirst(piece) }
            pair.finish()
        }
        for size in sizes { #expect(try pair.receive() == Array(Pair.frame(size).dropFirst(4))) }
        #expect(!pair.hasMore)
        #expect(throws: ChannelError.closed) { _ = try pair.receive() }
        writer.join()
    }

    @Test func whatHasComeAlreadyIsSeen() throws {
        let pair = try Pair()
        #expect(!pair.isReadable(within: .zero))
        #expect(pair.send(Pair.frame(10) + Pair.frame(20)))
        #expect(pair.isReadable(within: .seconds(30)))
        #expect(try pair.receive().count == 10)
        #expect(pair.hasMore && pair.isReadable(within: .zero))
        #expect(try pair.receive().count == 20)
        #expect(!pair.hasMore && !pair.isReadable(within: .zero))
    }

    @Test func oneThatIsTooLongIsNotTaken() throws {
        let pair = try Pair(maximumFrameBytes: 100)
        #expect(pair.send(Pair.frame(100) + Pair.frame(101)))
        #expect(try pair.receive().count == 100)
        #expect(throws: ChannelError.violation("a frame of 101 bytes, where at most 100 are allowed")) {
            _ = try pair.receive()
        }
    }
}

/// Frames as they are sent.
@Suite struct FramedSendingTests {
    /// A frame that does not fit the socket's buffer goes in as many calls as it takes.
    @Test(arguments: [0, 10, 4096, 4097, 3_000_000])
    func arriveWhole(size: Int) throws {
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let (left, right) = (ends[0], ends[1])
        let sender = try Thread(named: "sender") {
            let socket = FramedSocket(owning: left, maximumFrameBytes: 0)
            var frame = FrameWriter()
            for fill in 0..<3 {
                frame.begin()
                Array(repeating: UInt8(fill), count: size).withUnsafeBytes { frame.bytes($0) }
                frame.end()
                #expect(throws: Never.self) { try socket.send(&frame, until: MonotonicTime.now + .seconds(30)) }
            }
        }
        var socket = FramedSocket(owning: right, maximumFrameBytes: 4 << 20)
        var reader = FrameReader()
        for fill in 0..<3 {
            try reader.begin(try socket.receive(until: MonotonicTime.now + .seconds(30)))
            let bytes = try reader.bytes()
            #expect(bytes.count == size && bytes.allSatisfy { $0 == UInt8(fill) })
            try reader.expectEnd()
        }
        #expect(throws: ChannelError.closed) { _ = try socket.receive(until: nil) }
        sender.join()
    }

    @Test func doNotWaitForEver() throws {
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { close(ends[1]) }
        var socket = FramedSocket(owning: ends[0], maximumFrameBytes: 100)
        socket.setTimeout(.milliseconds(20))
        var frame = FrameWriter()
        frame.begin()
        Array(repeating: 0, count: 3_000_000).withUnsafeBytes { frame.bytes($0) }
        frame.end()
        #expect(throws: ChannelError.timedOut) {
            try socket.send(&frame, until: MonotonicTime.now + .milliseconds(20))
        }
        #expect(throws: ChannelError.timedOut) {
            _ = try socket.receive(until: MonotonicTime.now + .milliseconds(20))
        }
    }
}

/// Two ends of a socket, of which one receives frames.
private final class Pair: @unchecked Sendable {
    // @unchecked: one thread sends, another one receives.

    private let sender: CInt
    private var socket: FramedSocket

    init(maximumFrameBytes: Int = 4 << 20) throws {
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        sender = ends[0]
        socket = FramedSocket(owning: ends[1], maximumFrameBytes: maximumFrameBytes)
        socket.setTimeout(.seconds(30))
    }

    deinit { close(sender) }

    static func frame(_ size: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(size).bigEndian, Array.init) + repeatElement(UInt8(size % 251), count: size)
    }

    /// Sends bytes, all of them; false if that is not possible any more.
    func send(_ bytes: some Sequence<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(sender, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Nothing more will be sent.
    func finish() { _ = shutdown(sender, CInt(SHUT_WR)) }

    var hasMore: Bool { socket.hasMore }

    func isReadable(within timeout: Duration) -> Bool { socket.isReadable(within: timeout) }

    func receive() throws -> [UInt8] { Array(try socket.receive(until: MonotonicTime.now + .seconds(30))) }
}
