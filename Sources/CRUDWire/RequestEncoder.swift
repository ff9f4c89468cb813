package import CRUDJSON

/// Encodes a client's requests, one frame each, with an integer id, and its notifications.
package enum RequestEncoder {
    /// A whole frame, header included.
    ///
    /// - Parameters:
    ///   - traceparent: the trace that it belongs to, as of W3C Trace Context; nil: none.
    ///   - params: writes the value of `params`.
    package static func frame(
        id: Int, method: String, traceparent: String? = nil, params: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        frame(id, method, traceparent, params)
    }

    /// The frame of a notification, which gets no reply.
    ///
    /// - Parameter params: writes the value of `params`.
    package static func notification(method: String, params: (inout JSONWriter) -> Void) -> [UInt8] {
        frame(nil, method, nil, params)
    }

    private static func frame(
        _ id: Int?, _ method: String, _ traceparent: String?, _ params: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        var writer = JSONWriter(into: [UInt8](repeating: 0, count: FrameHeader.size))
        writer.object { request in
            request.member("jsonrpc", "2.0")
            if let id { request.member("id", id) }
            request.member("method", method)
            if let traceparent { request.member("traceparent", traceparent) }
            request.key("params")
            params(&request)
        }
        let header = FrameHeader.bytes(length: writer.bytes.count - FrameHeader.size)
        writer.bytes.replaceSubrange(0..<FrameHeader.size, with: header)
        return writer.bytes
    }
}
