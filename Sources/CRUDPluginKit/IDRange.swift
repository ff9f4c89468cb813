/// A half-open range of ids in the order of their bytes.
public struct IDRange: Sendable {
    /// The least id; empty: no bound.
    public let lower: [UInt8]
    /// Above the greatest; nil: no bound.
    public let upper: [UInt8]?

    public init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    /// Whether every id is in it.
    public var isUnbounded: Bool { lower.isEmpty && upper == nil }

    public func contains(_ id: some Sequence<UInt8>) -> Bool {
        if id.lexicographicallyPrecedes(lower) { return false }
        return upper.map { id.lexicographicallyPrecedes($0) } ?? true
    }

    /// The part of the range that a scan has yet to visit.
    ///
    /// - Parameters:
    ///   - id: the last one visited; empty: none.
    ///   - isReversed: whether the scan is descending.
    public func resumed(after id: some Collection<UInt8>, isReversed: Bool = false) -> IDRange {
        if id.isEmpty { return self }
        if isReversed {
            let isNarrower = upper.map { id.lexicographicallyPrecedes($0) } ?? true
            return isNarrower ? IDRange(lower: lower, upper: Array(id)) : self
        }
        // Nothing lies between an id and the same with a NUL appended.
        let next = Array(id) + [0]
        return next.lexicographicallyPrecedes(lower) ? self : IDRange(lower: next, upper: upper)
    }
}
