import CRUDModel

/// Where in an index those records stand that a condition can be true for, and perhaps others.
enum IndexRange {
    /// One type, whose values are not told apart.
    case type(PropertyIndex.Rank)
    /// Numbers, bounds included.
    case numbers(ExactNumber, ExactNumber)
    /// Strings, bounds included; no upper bound where it is nil.
    case strings([UInt8], [UInt8]?)

    /// A run of entries of one rank.
    struct Run {
        var rank: PropertyIndex.Rank
        /// Bounds, included; for ranks without values both are null.
        var lower: IndexKey
        var upper: IndexKey

        /// Whether it is one key.
        var isPoint: Bool { lower == upper }

        /// What all records of one exact key are sorted by.
        var sortValue: SortValue? {
            switch (rank, lower) {
            case (.null, _): .null
            case (.false, _): .boolean(false)
            case (.true, _): .boolean(true)
            case (.array, _): .array
            case (.object, _): .object
            case (_, .integer(let integer)): .number(.integer(integer))
            case (_, .real(let value)): .number(ExactNumber(value))
            case (_, .text(let text)): .string(text)
            case (_, .null), (_, .end): nil
            }
        }
    }

    /// The run in which values are exact.
    var run: Run {
        switch self {
        case .type(let rank): Run(rank: rank, lower: .null, upper: .null)
        case .numbers(let lower, let upper): Run(rank: .integer, lower: IndexKey(lower), upper: IndexKey(upper))
        case .strings(let lower, let upper):
            Run(rank: .string, lower: .text(lower), upper: upper.map { .text($0) } ?? .end)
        }
    }

    /// The run in which they are not, made wide enough for that.
    var inexactRun: Run? {
        switch self {
        case .type: nil
        case .numbers(let lower, let upper):
            Run(
                rank: .real, lower: .real(lower.nearestBinary64.lowered), upper: .real(upper.nearestBinary64.raised))
        case .strings(let lower, let upper):
            Run(
                rank: .stringNearNUL, lower: .text(Array(lower.prefix { $0 != 0 })),
                upper: upper.map { .text($0) } ?? .end)
        }
    }

    /// Whether there is but one exact value in it.
    var isPoint: Bool {
        switch self {
        case .type: true
        case .numbers(let lower, let upper): lower == upper
        case .strings(let lower, let upper): lower == upper
        }
    }

    /// What two conditions leave that must both be true; nil for nothing.
    func intersection(_ other: IndexRange) -> IndexRange? {
        switch (self, other) {
        case (.type(let rank), .type(let otherRank)): return rank == otherRank ? self : nil
        case (.numbers(let lower, let upper), .numbers(let otherLower, let otherUpper)):
            let (lower, upper) = (max(lower, otherLower), min(upper, otherUpper))
            return lower <= upper ? .numbers(lower, upper) : nil
        case (.strings(let lower, let upper), .strings(let otherLower, let otherUpper)):
            let highest = lower.lexicographicallyPrecedes(otherLower) ? otherLower : lower
            guard let upper, let otherUpper else { return .strings(highest, upper ?? otherUpper) }
            let lowest = upper.lexicographicallyPrecedes(otherUpper) ? upper : otherUpper
            return lowest.lexicographicallyPrecedes(highest) ? nil : .strings(highest, lowest)
        default: return nil
        }
    }
}

// MARK: Filters

extension IndexRange {
    /// The ranges, none of which overlaps another, of all records that a filter can be true for, as far as it speaks of
    /// one property; nil where it says nothing that an index helps with.
    static func ranges(_ filter: Filter, _ path: PropertyPath) -> [IndexRange]? {
        switch filter {
        case .and(let filters):
            filters.reduce(nil) { ranges, filter in combine(ranges, IndexRange.ranges(filter, path)) }
        case .comparison(let comparison, path, let literal): range(comparison, literal).map { [$0] }
        case .between(path, let low, let high):
            combine(range(.greaterOrEqual, low).map { [$0] }, range(.lessOrEqual, high).map { [$0] })
        case .isIn(path, let literals): Set(literals.map(Point.init)).map(\.range)
        case .isNull(path): [.type(.null)]
        case .like(path, let pattern): prefix(pattern).map { [$0] }
        case .arrayContains(path, _): [.type(.array)]
        default: nil
        }
    }

    private static func combine(_ left: [IndexRange]?, _ right: [IndexRange]?) -> [IndexRange]? {
        guard let left, let right else { return left ?? right }
        if left.count == 1, right.count == 1 { return left[0].intersection(right[0]).map { [$0] } ?? [] }
        return left.count < right.count ? left : right
    }

    private static func range(_ comparison: Comparison, _ literal: Literal) -> IndexRange? {
        switch (comparison, literal) {
        case (.equal, _): Point(literal).range
        case (.notEqual, _), (_, .boolean): nil
        case (.less, .number(let number)), (.lessOrEqual, .number(let number)):
            .numbers(.binary64(-.infinity), ExactNumber(number))
        case (.greater, .number(let number)), (.greaterOrEqual, .number(let number)):
            .numbers(ExactNumber(number), .binary64(.infinity))
        case (.less, .string(let text)), (.lessOrEqual, .string(let text)): .strings([], Array(text.utf8))
        case (.greater, .string(let text)), (.greaterOrEqual, .string(let text)): .strings(Array(text.utf8), nil)
        }
    }

    /// The strings that begin as a pattern does.
    private static func prefix(_ pattern: String) -> IndexRange? {
        guard let prefix = LikePattern(pattern.utf8)?.prefix, let last = prefix.last else { return nil }
        // No byte of UTF-8 is 0xFF.
        return .strings(prefix, prefix.dropLast() + [last + 1])
    }

    /// A literal by its value: 1 and 1.0 are one.
    private enum Point: Hashable {
        case boolean(Bool)
        case number(ExactNumber)
        case string([UInt8])

        init(_ literal: Literal) {
            switch literal {
            case .boolean(let value): self = .boolean(value)
            case .number(let number): self = .number(ExactNumber(number))
            case .string(let text): self = .string(Array(text.utf8))
            }
        }

        var range: IndexRange {
            switch self {
            case .boolean(let value): .type(value ? .true : .false)
            case .number(let number): .numbers(number, number)
            case .string(let text): .strings(text, text)
            }
        }
    }
}
