import CRUDJSON

/// A number as JSON text, digit for digit.
///
/// Two are equal if their texts are. Filters and sorts compare values: that of a number without fraction and exponent
/// from −2⁶³ to 2⁶³−1 is exact, that of any other is the nearest binary64 (±infinity outside its range).
///
/// - SeeAlso: RFC 8259, section 6, <https://www.rfc-editor.org/rfc/rfc8259#section-6>
public struct JSONNumber: Sendable, Hashable, CustomStringConvertible {
    /// The digits, as RFC 8259 allows them: ASCII without white space.
    public let text: String

    /// A number from its text; nil if that is not a number of RFC 8259 (`1.`, `+1`, `01`, `NaN`, ` 1`).
    public init?(text: String) {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        guard let slice = try? scanner.value(bytes.span), slice.kind == .number, slice.range == bytes.indices else {
            return nil
        }
        self.text = text
    }

    /// An integer of any width.
    public init(_ integer: some BinaryInteger) {
        text = String(integer)
    }

    /// A floating-point number as the shortest text that is parsed as the same value; nil for infinity and NaN, which
    /// JSON does not have.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// A number whose text a scanner has validated.
    init(checked text: String) {
        self.text = text
    }

    public var description: String { text }
}
