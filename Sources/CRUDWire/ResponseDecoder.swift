import CRUDJSON
import CRUDModel

/// Reads frames as a client receives them, strictly: one JSON-RPC 2.0 response with an integer id or null.
///
/// The result is checked and its place noted, not decoded.
package struct ResponseDecoder: ~Copyable {
    private var scanner = JSONScanner()

    package init() {}

    /// Reads the JSON of one frame.
    package mutating func decode(_ text: Span<UInt8>) throws(ResponseFault) -> Response {
        let envelope: Envelope
        do throws(JSONSyntaxError) {
            envelope = try scan(text)
        } catch {
            throw ResponseFault("not JSON: \(error.reason.rawValue) (byte \(error.offset))")
        }
        if let fault = envelope.fault { throw ResponseFault(fault) }
        guard envelope.hasVersion, let id = envelope.id else { throw ResponseFault("no JSON-RPC 2.0 response") }
        return Response(id: try Self.id(id, text), outcome: try Self.outcome(envelope, text))
    }

    /// The members of a response, as far as it has them.
    private struct Envelope {
        var hasVersion = false
        var id: JSONSlice?
        var result: JSONSlice?
        var error: JSONSlice?
        var fault: String?

        /// Notes `value` unless the member was there before.
        mutating func note(_ value: JSONSlice, as member: WritableKeyPath<Envelope, JSONSlice?>) {
            if self[keyPath: member] != nil { fault = "a member of the response is there twice" }
            self[keyPath: member] = value
        }
    }

    private mutating func scan(_ text: Span<UInt8>) throws(JSONSyntaxError) -> Envelope {
        scanner.reset()
        var envelope = Envelope()
        if try scanner.peekKind(text) == .object {
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                let value = try scanner.value(text)
                if key.equals("id", text) {
                    envelope.note(value, as: \.id)
                } else if key.equals("result", text) {
                    envelope.note(value, as: \.result)
                } else if key.equals("error", text) {
                    envelope.note(value, as: \.error)
                } else if key.equals("jsonrpc", text) {
                    envelope.hasVersion = value.kind == .string && value.equals("2.0", text)
                }
            }
        } else {
            _ = try scanner.value(text)
            envelope.fault = "no JSON-RPC 2.0 response"
        }
        guard scanner.isAtEnd(text) else {
            throw JSONSyntaxError(reason: .trailingBytes, offset: scanner.position)
        }
        return envelope
    }

    private static func id(_ slice: JSONSlice, _ text: Span<UInt8>) throws(ResponseFault) -> Int? {
        if slice.kind == .null { return nil }
        guard let id = slice.integer(text) else { throw ResponseFault("an id that no request had") }
        return id
    }

    private static func outcome(_ envelope: Envelope, _ text: Span<UInt8>) throws(ResponseFault) -> Response.Outcome {
        switch (envelope.result, envelope.error) {
        case (let result?, nil): return .result(result)
        case (nil, let slice?):
            guard let error = CRUDError(errorObject: slice, text) else { throw ResponseFault("a malformed error") }
            return .error(error)
        default: throw ResponseFault("neither a result nor an error, or both")
        }
    }
}
