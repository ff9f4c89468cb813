import CRUDJSON

/// The trace that a request belongs to, and the span of the client that has sent it.
///
/// It is what the member `traceparent` of the request says, a text as of
/// [Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header). By that standard a text that is not valid
/// counts as none.
package struct TraceParent: Sendable, Equatable, CustomStringConvertible {
    /// How long the text of version 00 is; that of a later version begins with as much.
    private static let size = 55
    /// Longer members are taken for invalid without a look at them.
    fileprivate static let maximumBytes = 512

    private let trace: UInt128
    private let span: UInt64
    private let version: UInt8
    private let flags: UInt8

    /// - Parameter text: nil is returned if it is not valid.
    package init?(_ text: Span<UInt8>) {
        let dash = UInt8(ascii: "-")
        guard text.count >= Self.size, text[2] == dash, text[35] == dash, text[52] == dash,
            let version: UInt8 = Self.number(text, 0..<2), let trace: UInt128 = Self.number(text, 3..<35),
            let span: UInt64 = Self.number(text, 36..<52), let flags: UInt8 = Self.number(text, 53..<55),
            version != 0xFF, trace != 0, span != 0,
            text.count == Self.size || version != 0 && text[Self.size] == dash
        else { return nil }
        self.version = version
        self.trace = trace
        self.span = span
        self.flags = flags
    }

    /// 32 hexadecimal digits.
    package var traceID: String { Self.text(trace) }

    /// 16 hexadecimal digits.
    package var spanID: String { Self.text(span) }

    /// The text that was sent, or of a version after 00 the part of it that is known.
    package var description: String { "\(Self.text(version))-\(traceID)-\(spanID)-\(Self.text(flags))" }

    /// The number of lower-case hexadecimal digits; nil if there are other characters.
    private static func number<Number: FixedWidthInteger>(_ text: Span<UInt8>, _ range: Range<Int>) -> Number? {
        var number: Number = 0
        for index in range {
            switch text[index] {
            case let digit where digit &- UInt8(ascii: "0") < 10:
                number = number << 4 | Number(digit - UInt8(ascii: "0"))
            case let digit where digit &- UInt8(ascii: "a") < 6:
                number = number << 4 | Number(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    /// All hexadecimal digits of a number.
    private static func text<Number: FixedWidthInteger>(_ number: Number) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: Number.bitWidth / 4 - digits.utf8.count) + digits
    }
}

extension Request {
    /// The trace that it belongs to; nil: none that is known.
    ///
    /// - Parameter text: in which the request stands.
    package func traceParent(_ text: Span<UInt8>) -> TraceParent? {
        guard let traceparent, traceparent.kind == .string, traceparent.count <= TraceParent.maximumBytes
        else { return nil }
        if traceparent.hasEscapes { return TraceParent(traceparent.decodedString(text).span) }
        return TraceParent(text.extracting(traceparent.content))
    }
}
