import CLinux
import Glibc

@testable import CRUDEventLoop

/// The other end of a stream: a non-blocking socket that the test uses.
final class Peer {
    let descriptor: CInt
    /// All that has come from the stream.
    private(set) var received: [UInt8] = []
    /// Whether the stream's end has come.
    private(set) var hasReachedEnd = false
    private var isClosed = false

    init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit {
        close()
    }

    /// A stream on `loop` and its peer.
    static func connected(to loop: EventLoop, _ handler: any StreamHandler) throws -> (peer: Peer, stream: Stream) {
        let (near, far) = try socketPair()
        return (Peer(far), try Stream(near, on: loop, handler: handler))
    }

    /// Sends as much as the socket takes and returns how much that was.
    @discardableResult
    func send(_ bytes: some Sequence<UInt8>) -> Int {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            sent += count
        }
        return sent
    }

    func send(_ text: String) {
        send(text.utf8)
    }

    /// Receives what is there, and returns how much has come so far.
    @discardableResult
    func receive() -> Int {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while !hasReachedEnd {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 {
                received += buffer[..<count]
            } else {
                if count == 0 || errno != EAGAIN { hasReachedEnd = true }
                break
            }
        }
        return received.count
    }

    var text: String {
        receive()
        return String(decoding: received, as: UTF8.self)
    }

    func shutDownWriting() {
        shutdown(descriptor, CInt(SHUT_WR))
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        Glibc.close(descriptor)
    }
}

extension Stream {
    /// How much memory the stream has for unconsumed bytes.
    var inputCapacity: Int { kept.capacity }

    /// How much memory the stream has for bytes to be written.
    var outputCapacity: Int { pending.capacity }
}

/// Two connected, non-blocking Unix sockets.
func socketPair() throws -> (CInt, CInt) {
    var pair: [CInt] = [-1, -1]
    let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw SystemCallError("socketpair") }
    return (pair[0], pair[1])
}

/// `count` bytes in which missing or swapped ones are noticed: they repeat, but at no round distance.
func pattern(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + patternPiece.count)
    while bytes.count < count { bytes += patternPiece }
    bytes.removeLast(bytes.count - count)
    return bytes
}

private let patternPiece: [UInt8] = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) }
