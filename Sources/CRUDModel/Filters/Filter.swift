/// Which records are meant: a condition on an item, in the terms of CQL2.
///
/// It is Basic CQL2 with the Advanced Comparison Operators and `a_contains`, as section 4 of the wire protocol has it.
/// A condition is true, false or unknown, as in SQL, and a record is meant where it is true. Text is compared by code
/// point: two filters are equal if they are spelt with the same ones.
///
/// - SeeAlso: OGC 21-065r2, Common Query Language (CQL2), <https://docs.ogc.org/is/21-065r2/21-065r2.html>
public indirect enum Filter: Sendable {
    /// Every record (`true`) or none (`false`).
    case constant(Bool)
    /// True where all are true, false where one is false. Of none: true. CQL2 writes two or more.
    case and([Filter])
    /// True where one is true, false where all are false. Of none: false. CQL2 writes two or more.
    case or([Filter])
    /// True where the other is false; unknown stays unknown.
    case not(Filter)
    /// A property against a literal. Unknown where the property is missing or null, or of another type than the literal.
    case comparison(Comparison, PropertyPath, Literal)
    /// Whether a string matches a pattern: `%` is any run of characters, `_` one code point, and `\` takes the special
    /// meaning from `%`, `_` and `\`. Case counts. Unknown where the property is no string.
    case like(PropertyPath, pattern: String)
    /// `>=` the first and `<=` the second literal.
    case between(PropertyPath, Literal, Literal)
    /// Equal to one of the literals: `=` joined by `or`.
    case isIn(PropertyPath, [Literal])
    /// Whether the property is missing or null. Never unknown.
    case isNull(PropertyPath)
    /// Whether every literal equals some element of the array. Unknown where the property is no array.
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
    // Written out, as String's own == takes canonically equivalent texts for one.
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
    /// Mixes in a text by its code points.
    mutating func combine(text: String) {
        combine(text.utf8.count)
        for byte in text.utf8 { combine(byte) }
    }
}
