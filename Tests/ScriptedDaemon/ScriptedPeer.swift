import CRUDTestSupport
import Foundation
import Glibc

/// One connection of a ``ScriptedDaemon``.
package final class ScriptedPeer {
    private var socket: Descriptor?

    init(_ socket: Descriptor) {
        self.socket = socket
    }

    package func close() {
        socket = nil
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

    /// Waits until the client closes the connection without sending anything.
    package func awaitClosing() throws {
        guard try receive(1).isEmpty else { throw Failure("the client sent something instead of closing") }
    }

    /// Discards what the client sends until it closes the connection.
    package func drain() throws {
        while try !receive(64 << 10).isEmpty {}
    }

    package func reply(to request: ScriptedRequest, _ result: String) throws {
        try send(#"{"jsonrpc":"2.0","id":\#(request.id),"result":\#(result)}"#)
    }

    package func reject(_ request: ScriptedRequest, _ error: String) throws {
        try send(#"{"jsonrpc":"2.0","id":\#(request.id),"error":\#(error)}"#)
    }

    /// Sends one frame.
    package func send(_ json: String) throws {
        try write(Self.frame(json))
    }

    /// Sends bytes as they are.
    package func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let socket = try ready(for: POLLOUT)
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            let count = rest.withUnsafeBytes { Glibc.send(socket.number, $0.baseAddress, $0.count, flags) }
            guard count >= 0 || errno == EAGAIN else { throw Failure.system("send") }
            rest = rest.dropFirst(max(0, count))
        }
    }

    /// The bytes of a frame.
    package static func frame(_ json: String) -> [UInt8] {
        withUnsafeBytes(of: UInt32(json.utf8.count).bigEndian, Array.init) + Array(json.utf8)
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try receive(count - bytes.count)
            guard !more.isEmpty else { throw Failure("the client has closed") }
            bytes += more
        }
        return bytes
    }

    /// The next bytes, at most `count`; none once the client has closed.
    private func receive(_ count: Int) throws -> [UInt8] {
        let socket = try ready(for: POLLIN)
        var bytes = [UInt8](repeating: 0, count: count)
        let size = recv(socket.number, &bytes, count, 0)
        // A client that closes with unread input resets the connection.
        guard size >= 0 || errno == ECONNRESET else { throw Failure.system("recv") }
        return Array(bytes[..<max(0, size)])
    }

    private func ready(for events: Int32) throws -> Descriptor {
        guard let socket else { throw Failure("the script has closed the connection") }
        guard try socket.wait(for: events, until: Deadline()) != 0 else { throw Failure("the client does nothing") }
        return socket
    }
}

/// A request, or a notification, that a ``ScriptedPeer`` has received.
package struct ScriptedRequest: Sendable {
    /// -1 for a notification.
    package let id: Int
    package let method: String
    /// The text of the whole request.
    package let text: String
    /// The strings among its `params`.
    package let strings: [String: String]

    init(json: Data) throws {
        guard let request = try JSONSerialization.jsonObject(with: json) as? [String: Any],
            request["jsonrpc"] as? String == "2.0", let id = (request["id"] ?? -1) as? Int,
            let method = request["method"] as? String, let params = request["params"] as? [String: Any]
        else { throw Failure("not a request") }
        self.id = id
        self.method = method
        text = String(decoding: json, as: UTF8.self)
        strings = params.compactMapValues { $0 as? String }
    }
}
