import CRUDModel

extension KeyRanges {
    /// The keys, in the index of `path`, of all records that a filter can be true for, and perhaps of others.
    ///
    /// - Parameter steps: how many ranges may be looked at; conditions beyond that restrict nothing.
    /// - Returns: nil where the filter does not restrict the property.
    init?(_ filter: Filter, of path: PropertyPath, atMost steps: Int = FilterRanges.maximumSteps) {
        var ranges = FilterRanges(of: path, atMost: steps)
        guard let found = ranges.ranges(filter, isNegated: false) else { return nil }
        self = found
    }
}

/// Finds the keys of the records that a filter can be true for. Records that have no key in the index are not spoken of
/// here: they are candidates of every query.
///
/// Sets of many ranges that are joined and intersected again and again would take seconds. So there is a bound, beyond
/// which a condition is passed over as if it was about another property: then there are more candidates, and the filter
/// decides about each of them.
struct FilterRanges {
    private let path: PropertyPath
    private var stepsLeft: Int

    /// As many values as a filter may have take a third of it; some ten milliseconds.
    static let maximumSteps = 1 << 15

    init(of path: PropertyPath, atMost steps: Int) {
        self.path = path
        stepsLeft = steps
    }

    /// Counts ranges that are about to be looked at; false where there have been too many.
    private mutating func take(_ steps: Int) -> Bool {
        stepsLeft -= steps
        return stepsLeft >= 0
    }

    /// - Parameter isNegated: the keys of the records that the filter can be false for instead.
    /// - Returns: nil where the filter does not restrict the property, as far as it has been looked at.
    mutating func ranges(_ filter: Filter, isNegated: Bool) -> KeyRanges? {
        guard take(1) else { return nil }
        switch filter {
        case .constant(let value): return value == isNegated ? KeyRanges.none : nil
        case .not(let filter): return ranges(filter, isNegated: !isNegated)
        case .and(let filters), .or(let filters):
            var parts: [KeyRanges?] = []
            for filter in filters { parts.append(ranges(filter, isNegated: isNegated)) }
            // An `or` is false where all its parts are, an `and` where one is.
            if case .and = filter { return isNegated ? union(parts) : intersection(parts) }
            return isNegated ? intersection(parts) : union(parts)
        case .between(path, let low, let high):
            let parts = [(Comparison.greaterOrEqual, low), (.lessOrEqual, high)]
            let filters = parts.map { Filter.comparison($0.0, path, $0.1) }
            return ranges(.and(filters), isNegated: isNegated)
        case .comparison(let comparison, path, let literal):
            return Self.ranges(isNegated ? comparison.negated : comparison, literal)
        case .isIn(path, let literals):
            guard !isNegated, take(literals.count) else { return nil }
            return KeyRanges(literals.flatMap { Self.ranges(.equal, $0).ranges })
        case .isNull(path):
            return isNegated ? KeyRanges(lower: [IndexKey.TypeByte.null + 1], upper: []) : KeyRanges(point: .null)
        case .like(path, let pattern):
            return isNegated ? Self.keys(ofType: IndexKey.TypeByte.string) : Self.prefixed(pattern)
        case .arrayContains(path, _): return KeyRanges(point: .array)
        case .comparison, .between, .isIn, .isNull, .like, .arrayContains: return nil
        }
    }

    private mutating func intersection(_ parts: [KeyRanges?]) -> KeyRanges? {
        var common: KeyRanges?
        for case let part? in parts {
            guard let former = common else {
                common = part
                continue
            }
            guard take(former.ranges.count + part.ranges.count) else { break }
            common = former.intersection(part)
        }
        return common
    }

    private mutating func union(_ parts: [KeyRanges?]) -> KeyRanges? {
        var ranges: [KeyRange] = []
        for part in parts {
            guard let part else { return nil }
            ranges += part.ranges
        }
        guard take(ranges.count) else { return nil }
        return KeyRanges(ranges)
    }

    /// The values of one type.
    private static func keys(ofType type: UInt8) -> KeyRanges { KeyRanges(lower: [type], upper: [type + 1]) }

    /// The values that a comparison with a literal is true for, which are of the literal's type.
    private static func ranges(_ comparison: Comparison, _ literal: Literal) -> KeyRanges {
        let (bound, ofType): (IndexKey.Bound, KeyRanges) =
            switch literal {
            case .boolean(let value):
                (
                    IndexKey.bound(.boolean(value)),
                    KeyRanges(lower: [IndexKey.TypeByte.false], upper: [IndexKey.TypeByte.number])
                )
            case .number(let number):
                (IndexKey.bound(.number(ExactNumber(number))), keys(ofType: IndexKey.TypeByte.number))
            case .string(let text): (IndexKey.bound(.string(Array(text.utf8))), keys(ofType: IndexKey.TypeByte.string))
            }
        let above = IndexKey.successor(bound.key)
        // Where the value has no key, the greatest text below it is among the lesser values.
        let from = bound.isExact ? bound.key : above
        let values: [KeyRange] =
            switch comparison {
            case .equal: bound.isExact ? [KeyRange(lower: from, upper: above)] : []
            case .notEqual: [KeyRange(upper: from), KeyRange(lower: above)]
            case .less: [KeyRange(upper: from)]
            case .lessOrEqual: [KeyRange(upper: above)]
            case .greater: [KeyRange(lower: above)]
            case .greaterOrEqual: [KeyRange(lower: from)]
            }
        return KeyRanges(values).intersection(ofType)
    }

    /// The strings that begin as a pattern does.
    private static func prefixed(_ pattern: String) -> KeyRanges {
        let strings = keys(ofType: IndexKey.TypeByte.string)
        guard let prefix = LikePattern(pattern.utf8)?.prefix, let last = prefix.last else { return strings }
        guard prefix.count < IndexKey.maximumBytes else { return .none }
        let lower = [IndexKey.TypeByte.string] + prefix
        // No byte of UTF-8 is 0xFF.
        return KeyRanges(lower: lower, upper: lower.dropLast() + [last + 1])
    }
}

extension Comparison {
    /// The comparison that is true where this one is false.
    fileprivate var negated: Comparison {
        switch self {
        case .equal: .notEqual
        case .notEqual: .equal
        case .less: .greaterOrEqual
        case .lessOrEqual: .greater
        case .greater: .lessOrEqual
        case .greaterOrEqual: .less
        }
    }
}
