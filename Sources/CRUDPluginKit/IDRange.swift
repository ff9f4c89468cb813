/// The ids of a walk as a half-open range in the order of bytes.
public struct IDRange: Sendable {
    /// The least id.
    public let lower: [UInt8]
    /// Above the greatest; nil: no bound.
    public let upper: [UInt8]?

    /// - Parameters:
    ///   - after: below the least id; may be empty.
    ///   - prefix: how every id begins, in UTF-8; may be empty.
    public init(after: UnsafeRawBufferPointer, prefix: UnsafeRawBufferPointer) {
        // Nothing lies between a text and the same with a NUL behind it. No id is empty, so this fits an empty one too.
        let next = Array(after) + [0]
        let first = Array(prefix)
        lower = next.lexicographicallyPrecedes(first) ? first : next
        // The prefix is UTF-8, in which no byte is 0xFF.
        upper = first.last.map { first.dropLast() + [$0 + 1] }
    }

    private init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    public func contains(_ id: some Sequence<UInt8>) -> Bool {
        if id.lexicographicallyPrecedes(lower) { return false }
        return upper.map { id.lexicographicallyPrecedes($0) } ?? true
    }

    /// The ids of the range that stand after `id`, which is one of them.
    public func after(_ id: [UInt8]) -> IDRange {
        IDRange(lower: id + [0], upper: upper)
    }
}
