/// A number of four bytes in a file that every commit increments by one, whoever makes it.
public struct CommitCounter: Sendable {
    /// Absolute.
    public var path: String
    /// Where the number is in the file.
    public var offset: UInt64

    public init(path: String, offset: UInt64) {
        self.path = path
        self.offset = offset
    }
}
