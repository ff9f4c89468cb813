/// A condition that selects records by their items, in the terms of CQL2.
///
/// It is Basic CQL2 with the Advanced Comparison Operators and `a_contains`, as the wire protocol defines it
/// (PROTOCOL.md, "Filters"). A condition is true, false or unknown, as in SQL; it selects a record if it is true. Text
/// is compared by code point, also in the comparison of two filters.
///
/// - SeeAlso: OGC 21-065r2, Common Query Language (CQL2), <https://docs.ogc.org/is/21-065r2/21-065r2.html>
public indirect enum Filter: Sendable {
    /// Every record (`true`) or none (`false`).
    case constant(Bool)
    /// True if all are true, false if one is false. Of none: true. CQL2 requires at least two.
    case and([Filter])
    /// True if one is true, false if all are false. Of none: false. CQL2 requires at least two.
    case or([Filter])
    /// True if the other is false; unknown stays unknown.
    case not(Filter)
    /// A property compared with a literal. Unknown if the property is missing or null, or has another type.
    case comparison(Comparison, PropertyPath, Literal)
    /// Whether a string matches a pattern: `%` matches any run of characters, `_` one code point, and `\` escapes `%`,
    /// `_` and `\`. Case-sensitive. Unknown if the property is not a string.
    case like(PropertyPath, pattern: String)
    /// `>=` the first literal and `<=` the second one.
    case between(PropertyPath, Literal, Literal)
    /// Equal to one of the literals: `=` joined by `or`.
    case isIn(PropertyPath, [Literal])
    /// Whether the property is missing or null. Never unknown.
    case isNull(PropertyPath)
    /// Whether every literal equals some element of the array. Unknown if the property is not an array.
    case arrayContains(PropertyPath, [Literal])
}

/// How a property is compared with a literal.
public enum Comparison: String, Sendable, CaseIterable {
    case equal = "="
    case notEqual = "<>"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
}

extension Filter: Hashable {
    // Not synthesised, because String's == ignores the difference between canonically equivalent texts.
    public static func == (left: Filter, right: Filter) -> Bool {
        switch (left, right) {
        case (.constant(let left), .constant(let right)): left == right
        case (.and(let left), .and(let right)), (.or(let left), .or(let right)): left == right
        case (.not(let left), .not(let right)): left == right
        case (.comparison(let left, let leftPath, let leftLiteral), .comparison(let right, let path, let literal)):
            left == right && leftPath == path && leftLiteral == literal
        case (.like(let leftPath, let left), .like(let path, let right)):
            leftPath == path && left.utf8.elementsEqual(right.utf8)
        case (.between(let leftPath, let leftLow, let leftHigh), .between(let path, let low, let high)):
            leftPath == path && leftLow == low && leftHigh == high
        case (.isIn(let leftPath, let left), .isIn(let path, let right)),
            (.arrayContains(let leftPath, let left), .arrayContains(let path, let right)):
            leftPath == path && left == right
        case (.isNull(let left), .isNull(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .constant(let value): hasher.combine(value)
        case .and(let filters), .or(let filters): hasher.combine(filters)
        case .not(let filter): hasher.combine(filter)
        case .comparison(let comparison, let path, let literal):
            hasher.combine(comparison)
            hasher.combine(path)
            hasher.combine(literal)
        case .like(let path, let pattern):
            hasher.combine(path)
            hasher.combine(text: pattern)
        case .between(let path, let low, let high):
            hasher.combine(path)
            hasher.combine(low)
            hasher.combine(high)
        case .isIn(let path, let literals), .arrayContains(let path, let literals):
            hasher.combine(path)
            hasher.combine(literals)
        case .isNull(let path): hasher.combine(path)
        }
    }
}

extension Hasher {
    /// Combines a text by its code points.
    mutating func combine(text: String) {
        combine(text.utf8.count)
        for byte in text.utf8 { combine(byte) }
    }
}
