import CRUDModel

/// The keys from `lower`, included, up to `upper`, excluded.
struct KeyRange: Equatable {
    /// Empty: no bound.
    var lower: [UInt8] = []
    /// Empty: no bound.
    var upper: [UInt8] = []

    /// Whether only one key is in it.
    var isPoint: Bool { !lower.isEmpty && upper == IndexKey.successor(lower) }

    func contains(_ key: [UInt8]) -> Bool {
        !key.lexicographicallyPrecedes(lower) && (upper.isEmpty || key.lexicographicallyPrecedes(upper))
    }

    /// The keys in both ranges; nil for none.
    func intersection(_ other: KeyRange) -> KeyRange? {
        let lower = lower.lexicographicallyPrecedes(other.lower) ? other.lower : lower
        let upper = Self.isLess(upper, other.upper) ? upper : other.upper
        guard upper.isEmpty || lower.lexicographicallyPrecedes(upper) else { return nil }
        return KeyRange(lower: lower, upper: upper)
    }

    /// Whether one upper bound is less than another.
    static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        !left.isEmpty && (right.isEmpty || left.lexicographicallyPrecedes(right))
    }
}

/// A set of keys: ranges in ascending order, with keys between them that are not in the set.
struct KeyRanges: Equatable {
    private(set) var ranges: [KeyRange]

    static let none = KeyRanges(ordered: [])
    static let all = KeyRanges(ordered: [KeyRange()])

    /// - Parameter ranges: in ascending order, with keys between them.
    private init(ordered ranges: [KeyRange]) {
        self.ranges = ranges
    }

    init(lower: [UInt8], upper: [UInt8]) {
        ranges = [KeyRange(lower: lower, upper: upper)]
    }

    /// The key of a value that always has one.
    init(point value: SortValue) {
        let key = IndexKey.bound(value).key
        self.init(lower: key, upper: IndexKey.successor(key))
    }

    /// The keys in any of the ranges, which may overlap.
    init(_ ranges: [KeyRange]) {
        self.ranges = []
        for range in ranges.sorted(by: { $0.lower.lexicographicallyPrecedes($1.lower) }) {
            if let last = self.ranges.last, last.upper.isEmpty || !last.upper.lexicographicallyPrecedes(range.lower) {
                if KeyRange.isLess(last.upper, range.upper) { self.ranges[self.ranges.count - 1].upper = range.upper }
            } else {
                self.ranges.append(range)
            }
        }
    }

    /// The one key that it holds; nil for fewer or more.
    var point: [UInt8]? { ranges.count == 1 && ranges[0].isPoint ? ranges[0].lower : nil }

    /// The keys in both sets.
    func intersection(_ other: KeyRanges) -> KeyRanges {
        var common: [KeyRange] = []
        var (index, otherIndex) = (0, 0)
        while index < ranges.count, otherIndex < other.ranges.count {
            let (range, otherRange) = (ranges[index], other.ranges[otherIndex])
            if let both = range.intersection(otherRange) { common.append(both) }
            if KeyRange.isLess(range.upper, otherRange.upper) { index += 1 } else { otherIndex += 1 }
        }
        return KeyRanges(ordered: common)
    }
}
