import CRUDJSON
import CRUDModel

/// Decodes the frames that a client receives, strictly: one JSON-RPC 2.0 response with an integer id or null.
///
/// The result is validated and located, not decoded.
package struct ResponseDecoder: ~Copyable {
    private var scanner = JSONScanner()

    package init() {}

    /// Decodes the JSON of one frame.
    package mutating func decode(_ text: Span<UInt8>) throws(ProtocolViolation) -> Response {
        let envelope: Envelope
        do throws(JSONSyntaxError) {
            envelope = try scan(text)
        } catch {
            throw ProtocolViolation("not valid JSON: \(error.reason.rawValue) (byte \(error.offset))")
        }
        if let violation = envelope.violation { throw ProtocolViolation(violation) }
        guard envelope.hasVersion, let id = envelope.id else { throw ProtocolViolation(Self.noResponse) }
        return Response(id: try Self.id(id, text), outcome: try Self.outcome(envelope, text))
    }

    /// The members of a response, as far as it has them.
    private struct Envelope {
        var hasVersion = false
        var id: JSONSlice?
        var result: JSONSlice?
        var error: JSONSlice?
        var violation: String?

        /// Stores `value`; a repeated member is a violation.
        mutating func set(_ value: JSONSlice, as member: WritableKeyPath<Envelope, JSONSlice?>) {
            if self[keyPath: member] != nil { violation = "a member of the response occurs twice" }
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
                    envelope.set(value, as: \.id)
                } else if key.equals("result", text) {
                    envelope.set(value, as: \.result)
                } else if key.equals("error", text) {
                    envelope.set(value, as: \.error)
                } else if key.equals("jsonrpc", text) {
                    envelope.hasVersion = value.kind == .string && value.equals("2.0", text)
                }
            }
        } else {
            _ = try scanner.value(text)
            envelope.violation = Self.noResponse
        }
        try scanner.expectEnd(text)
        return envelope
    }

    private static let noResponse = "not a JSON-RPC 2.0 response"

    private static func id(_ slice: JSONSlice, _ text: Span<UInt8>) throws(ProtocolViolation) -> Int? {
        if slice.kind == .null { return nil }
        guard let id = slice.integer(text) else { throw ProtocolViolation("an id that no request had") }
        return id
    }

    private static func outcome(_ envelope: Envelope, _ text: Span<UInt8>) throws(ProtocolViolation) -> Response.Outcome
    {
        switch (envelope.result, envelope.error) {
        case (let result?, nil): return .result(result)
        case (nil, let slice?):
            guard let error = CRUDError(errorObject: slice, text) else {
                throw ProtocolViolation("a malformed error")
            }
            return .error(error)
        default: throw ProtocolViolation("neither a result nor an error, or both")
        }
    }
}
