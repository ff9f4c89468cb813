import CLinux
import FoundationEssentials
import Glibc

/// Several connections with few frames at a time.
struct FrameExchange {
    struct Frame {
        let connection: Int
        let text: [UInt8]
        /// When it was read.
        let time: UInt64
    }

    private let poller: Poller
    private let sockets: [Int32]
    private var input: [[UInt8]]
    private var frames: [Frame] = []

    private static let timeoutSeconds: UInt64 = 60

    init(_ path: String, connections: Int) throws {
        poller = try Poller()
        sockets = try (0..<connections).map { _ in try UnixSocket.connect(path) }
        input = Array(repeating: [], count: connections)
        for (number, socket) in sockets.enumerated() { try poller.add(socket, number: number) }
    }

    /// A short request, which the socket's buffer takes.
    func send(_ method: String, _ params: String, on connection: Int) throws {
        let text = Array(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#.utf8)
        let frame = withUnsafeBytes(of: UInt32(text.count).bigEndian, Array.init) + text
        let count = Glibc.send(sockets[connection], frame, frame.count, Int32(MSG_NOSIGNAL))
        guard count == frame.count else { throw BenchError.system("send") }
    }

    /// The next frames, from whatever connections.
    mutating func receive(_ count: Int) throws -> [Frame] {
        let end = MonotonicClock.now() + Self.timeoutSeconds * 1_000_000_000
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while frames.count < count {
            let ready = try poller.wait(milliseconds: 1000)
            for index in 0..<ready {
                let number = poller.number(at: index)
                let size = recv(sockets[number], &chunk, chunk.count, 0)
                guard size > 0 else { throw BenchError("crudd has closed a connection") }
                input[number] += chunk[..<size]
                split(number, MonotonicClock.now())
            }
            guard MonotonicClock.now() < end else { throw BenchError("no reply for \(Self.timeoutSeconds) s") }
        }
        defer { frames.removeFirst(count) }
        return Array(frames.prefix(count))
    }

    private struct Reply<Result: Decodable>: Decodable { var result: Result? }

    /// The result of a call, while nothing else is awaited.
    mutating func call<Result: Decodable>(_ method: String, _ params: String = "{}") throws -> Result {
        try send(method, params, on: 0)
        let text = try receive(1)[0].text
        guard let result = try JSONDecoder().decode(Reply<Result>.self, from: Data(text)).result else {
            throw BenchError("\(method): \(String(decoding: text, as: UTF8.self))")
        }
        return result
    }

    private mutating func split(_ connection: Int, _ time: UInt64) {
        while input[connection].count >= 4 {
            let length = input[connection].prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard input[connection].count >= 4 + length else { return }
            frames.append(
                Frame(connection: connection, text: Array(input[connection][4..<(4 + length)]), time: time))
            input[connection].removeFirst(4 + length)
        }
    }
}
