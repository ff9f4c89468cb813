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
}
