import Foundation
import Glibc

/// One connection of a ``ScriptedDaemon``.
package final class ScriptedPeer {
    private var socket: Int32

    init(socket: Int32) {
        self.socket = socket
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close()
    }

    package func close() {
        guard socket >= 0 else { return }
        Glibc.close(socket)
        socket = -1
    }

    /// The next request.
    package func request() throws -> ScriptedRequest {
        let header = try read(4)
        let length = header.reduce(0) { $0 << 8 | Int($1) }
        return try ScriptedRequest(json: Data(try read(length)))
    }

    package func requests(_ count: Int) throws -> [ScriptedRequest] {
        try (0..<count).map { _ in try request() }
    }

    /// Waits until the client has closed the connection.
    package func awaitClosing() throws {
        var byte: UInt8 = 0
        switch recv(socket, &byte, 1, 0) {
        case 0: return
        case 1: throw ScriptFault("the client sent something instead of closing")
        default: throw ScriptFault("the client neither closes nor sends: \(errno)")
        }
    }

    package func answer(_ request: ScriptedRequest, _ result: String) throws {
        try send(#"{"jsonrpc":"2.0","id":\#(request.id),"result":\#(result)}"#)
    }

    package func refuse(_ request: ScriptedRequest, _ error: String) throws {
        try send(#"{"jsonrpc":"2.0","id":\#(request.id),"error":\#(error)}"#)
    }

    /// Sends one frame.
    package func send(_ json: String) throws {
        try write(Self.frame(json))
    }

    /// Sends bytes as they are.
    package func write(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw ScriptFault("send: \(errno)") }
            sent += count
        }
    }

    /// The bytes of a frame.
    package static func frame(_ json: String) -> [UInt8] {
        withUnsafeBytes(of: UInt32(json.utf8.count).bigEndian, Array.init) + Array(json.utf8)
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = 0
        while received < count {
            let size = bytes.withUnsafeMutableBytes {
                recv(socket, $0.baseAddress?.advanced(by: received), count - received, 0)
            }
            guard size > 0 else { throw ScriptFault(size == 0 ? "the client has closed" : "recv: \(errno)") }
            received += size
        }
        return bytes
    }
}

/// A request as a ``ScriptedPeer`` received it.
package struct ScriptedRequest: Sendable {
    package let id: Int
    package let method: String
    /// The whole request as it came.
    package let text: String
    /// The strings among its `params`.
    package let strings: [String: String]

    init(json: Data) throws {
        guard let request = try JSONSerialization.jsonObject(with: json) as? [String: Any],
            request["jsonrpc"] as? String == "2.0", let id = request["id"] as? Int,
            let method = request["method"] as? String, let params = request["params"] as? [String: Any]
        else { throw ScriptFault("no request") }
        self.id = id
        self.method = method
        text = String(decoding: json, as: UTF8.self)
        strings = params.compactMapValues { $0 as? String }
    }
}
