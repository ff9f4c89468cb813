import CRUDModel

// The keys of the records that a filter can be true for. Records that have no key in the index are not spoken of here:
// they are candidates of every query.
extension KeyRanges {
    /// The keys, in the index of `path`, of all records that a filter can be true for, and perhaps of others.
    ///
    /// - Returns: nil where the filter does not restrict the property.
    init?(_ filter: Filter, of path: PropertyPath) {
        guard let ranges = Self.ranges(filter, path, isNegated: false) else { return nil }
        self = ranges
    }

    /// - Parameter isNegated: the keys of the records that the filter can be false for instead.
    private static func ranges(_ filter: Filter, _ path: PropertyPath, isNegated: Bool) -> KeyRanges? {
        switch filter {
        case .constant(let value): return value == isNegated ? KeyRanges.none : nil
        case .not(let filter): return ranges(filter, path, isNegated: !isNegated)
        case .and(let filters), .or(let filters):
            let parts = filters.map { ranges($0, path, isNegated: isNegated) }
            // An `or` is false where all its parts are, an `and` where one is.
            if case .and = filter { return isNegated ? union(parts) : intersection(parts) }
            return isNegated ? intersection(parts) : union(parts)
        case .between(path, let low, let high):
            let parts = [(Comparison.greaterOrEqual, low), (.lessOrEqual, high)]
            let filters = parts.map { Filter.comparison($0.0, path, $0.1) }
            return ranges(.and(filters), path, isNegated: isNegated)
        case .comparison(let comparison, path, let literal):
            return ranges(isNegated ? comparison.negated : comparison, literal)
        case .isIn(path, let literals):
            return isNegated ? nil : KeyRanges(literals.flatMap { ranges(.equal, $0).ranges })
        case .isNull(path):
            return isNegated ? KeyRanges(lower: [IndexKey.TypeByte.null + 1], upper: []) : KeyRanges(point: .null)
        case .like(path, let pattern):
            return isNegated ? type(IndexKey.TypeByte.string) : prefixed(pattern)
        case .arrayContains(path, _): return KeyRanges(point: .array)
        case .comparison, .between, .isIn, .isNull, .like, .arrayContains: return nil
        }
    }

    private static func intersection(_ parts: [KeyRanges?]) -> KeyRanges? {
        parts.reduce(nil) { common, part in
            guard let common, let part else { return common ?? part }
            return common.intersection(part)
        }
    }

    private static func union(_ parts: [KeyRanges?]) -> KeyRanges? {
        var ranges: [KeyRange] = []
        for part in parts {
            guard let part else { return nil }
            ranges += part.ranges
        }
        return KeyRanges(ranges)
    }

    /// The values of one type.
    private static func type(_ type: UInt8) -> KeyRanges { KeyRanges(lower: [type], upper: [type + 1]) }

    /// The values that a comparison with a literal is true for, which are of the literal's type.
    private static func ranges(_ comparison: Comparison, _ literal: Literal) -> KeyRanges {
        let (bound, ofType): (IndexKey.Bound, KeyRanges) =
            switch literal {
            case .boolean(let value):
                (
                    IndexKey.bound(.boolean(value)),
                    KeyRanges(lower: [IndexKey.TypeByte.false], upper: [IndexKey.TypeByte.number])
                )
            case .number(let number): (IndexKey.bound(.number(ExactNumber(number))), type(IndexKey.TypeByte.number))
            case .string(let text): (IndexKey.bound(.string(Array(text.utf8))), type(IndexKey.TypeByte.string))
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
        let strings = type(IndexKey.TypeByte.string)
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
