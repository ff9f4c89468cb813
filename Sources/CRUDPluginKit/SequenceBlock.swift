/// How durable storage keeps sequence numbers from being used twice without a write for each: it stores an upper bound
/// of those in use, raised by a block before the first number of the block is used, and reports that bound as
/// ``StorageBackend/lastSequence``.
public enum SequenceBlock {
    private static let size: UInt64 = 1 << 20

    /// The greatest number of the block that a number is in.
    public static func last(of sequence: UInt64) -> UInt64 { sequence | (size - 1) }
}
