/// A value that a filter compares a property with: a string, a number or a boolean. For null there is
/// ``Filter/isNull(_:)``.
public enum Literal: Sendable {
    /// Compared by code point.
    case string(String)
    /// Compared by exact value, see ``JSONNumber``.
    case number(JSONNumber)
    /// false < true.
    case boolean(Bool)
}

extension Literal: Hashable {
    // Not synthesised, because String's == ignores the difference between canonically equivalent texts.
    public static func == (left: Literal, right: Literal) -> Bool {
        switch (left, right) {
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.number(let left), .number(let right)): left == right
        case (.boolean(let left), .boolean(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .string(let text): hasher.combine(text: text)
        case .number(let number): hasher.combine(number)
        case .boolean(let value): hasher.combine(value)
        }
    }
}

extension Literal: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public init(stringLiteral text: String) {
        self = .string(text)
    }

    public init(integerLiteral integer: Int64) {
        self = .number(JSONNumber(integer))
    }

    public init(booleanLiteral value: Bool) {
        self = .boolean(value)
    }
}
