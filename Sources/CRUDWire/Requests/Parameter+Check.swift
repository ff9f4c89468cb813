package import CRUDJSON
package import CRUDModel

extension Parameter {
    /// The parameter with this name; nil if there is none.
    static func named(_ key: JSONSlice, _ text: Span<UInt8>) -> Parameter? {
        for rawValue in 0..<count {
            if let parameter = Parameter(rawValue: rawValue), key.equals(parameter.name, text) { return parameter }
        }
        return nil
    }

    /// Checks the type of a value, and the naming rule of ids, names and revisions.
    ///
    /// - Throws: `invalid_params`, naming the member.
    func check(_ value: JSONSlice, _ text: Span<UInt8>) throws(CRUDError) {
        if let kind, value.kind != kind { throw invalid("must be \(noun(of: kind))") }
        if isBoolean, value.kind != .true, value.kind != .false { throw invalid("must be true or false") }
        switch self {
        case .collection: try checkText(value, text, maximum: Naming.maximumCollectionNameBytes)
        case .id: try checkText(value, text, maximum: Naming.maximumIDBytes)
        case .ifRevision:
            let size = value.hasEscapes ? value.decodedString(text).count : value.content.count
            if size > Naming.maximumRevisionBytes {
                throw invalid("is longer than \(Naming.maximumRevisionBytes) bytes")
            }
        case .protocolVersion where !value.isInteger(text), .limit where !value.isInteger(text),
            .session where !value.isInteger(text):
            throw invalid("must be an integer")
        case .session where value.integer(text) == nil: throw invalid("must be an integer of 64 bits")
        case .ttl: _ = try milliseconds(value, text, atMost: DefaultLimits.ttlSeconds, isPositive: true)
        case .expiresAt:
            guard let instant = value.integer(text), 1...DefaultLimits.latestExpiry ~= instant else {
                throw invalid("must be an integer from 1 to \(DefaultLimits.latestExpiry)")
            }
        case .wait: _ = try milliseconds(value, text, atMost: DefaultLimits.waitSeconds, isPositive: false)
        default: break
        }
    }

    /// A number of seconds, in milliseconds.
    ///
    /// - Parameter isPositive: whether it must be more than 0; what is less than a millisecond counts as one then.
    /// - Throws: `invalid_params`.
    package func milliseconds(
        _ value: JSONSlice, _ text: Span<UInt8>, atMost maximum: Int, isPositive: Bool
    ) throws(CRUDError) -> Int64 {
        let digits = String(decoding: value.bytes(text), as: UTF8.self)
        guard value.kind == .number, let seconds = Double(digits), isPositive ? seconds > 0 : seconds >= 0,
            seconds <= Double(maximum)
        else {
            throw invalid("must be a number of seconds \(isPositive ? "above 0, at most" : "from 0 to") \(maximum)")
        }
        return max(isPositive ? 1 : 0, Int64((seconds * 1000).rounded()))
    }

    private func checkText(_ value: JSONSlice, _ text: Span<UInt8>, maximum: Int) throws(CRUDError) {
        let violation: String?
        if value.hasEscapes {
            violation = Naming.violation(value.decodedString(text).span, maximum: maximum)
        } else {
            violation = Naming.violation(text.extracting(value.content), maximum: maximum)
        }
        if let violation { throw invalid(violation) }
    }

    /// The `invalid_params` error for this parameter.
    ///
    /// - Parameter reason: the end of a sentence that begins with the parameter's name.
    package func invalid(_ reason: String) -> CRUDError {
        .invalid(name.description, reason)
    }

    private func noun(of kind: JSONKind) -> String {
        switch kind {
        case .array: "an array"
        case .object: "an object"
        case .string: "a string"
        case .number: self == .ttl || self == .wait ? "a number of seconds" : "an integer"
        case .true, .false: "true or false"
        case .null: "null"
        }
    }
}
