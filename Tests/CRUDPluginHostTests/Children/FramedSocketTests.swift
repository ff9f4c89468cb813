import Glibc
import Testing

@testable import CRUDPluginHost

/// Frames on a socket, however they come.
@Suite struct FramedSocketTests {
    /// Both ends of a socket: the one that receives, and the other.
    private static func pair() throws -> (CInt, CInt) {
        var descriptors: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
        return (descriptors[0], descriptors[1])
    }

    private static func frame(_ text: String) -> [UInt8] {
        let size = UInt32(text.utf8.count)
        return withUnsafeBytes(of: size.bigEndian) { Array($0) } + Array(text.utf8)
    }

    private static let texts = [
        "{}", "", String(repeating: "a", count: 100_000), "b", String(repeating: "c", count: 70),
    ]

    /// An interrupt and the request behind it may come as one.
    @Test func whatComesTogetherIsReceivedOneByOne() throws {
        let (descriptor, other) = try Self.pair()
        defer { close(other) }
        var socket = FramedSocket(owning: descriptor, maximumFrameBytes: 4 << 20)
        let bytes = Self.texts.flatMap(Self.frame)
        try #require(write(other, bytes, bytes.count) == bytes.count)
        for text in Self.texts {
            let isReadable = socket.isReadable(within: .zero)
            #expect(isReadable)
            let frame = String(decoding: try socket.receive(until: nil), as: UTF8.self)
            #expect(frame == text)
        }
        let (isReadable, hasMore) = (socket.isReadable(within: .zero), socket.hasMore)
        #expect(!isReadable && !hasMore)
    }

    @Test(arguments: [1, 2, 3, 5, 7, 4096])
    func whatComesInPiecesIsReceivedWhole(size: Int) throws {
        let (descriptor, other) = try Self.pair()
        var socket = FramedSocket(owning: descriptor, maximumFrameBytes: 4 << 20)
        let texts = Self.texts.filter { $0.utf8.count < 1000 }
        let bytes = texts.flatMap(Self.frame)
        let writer = try Thread(named: "writer") {
            for start in stride(from: 0, to: bytes.count, by: size) {
                let piece = Array(bytes[start..<min(start + size, bytes.count)])
                _ = write(other, piece, piece.count)
                sched_yield()
            }
            close(other)
        }
        for text in texts {
            let frame = String(decoding: try socket.receive(until: nil), as: UTF8.self)
            #expect(frame == text)
        }
        var fault: FramedSocket.Fault?
        do { _ = try socket.receive(until: nil) } catch { fault = error }
        #expect(fault == .ended)
        writer.join()
    }
}
