/// A copy of a backend's storage that is being written, see ``StorageBackend/beginBackup(to:_:)``.
///
/// The host makes one call at a time; with ``Capabilities/readsConcurrently`` at the same time as calls of the backend
/// and its readers.
public protocol StorageBackup: AnyObject {
    /// Copies on for some milliseconds.
    ///
    /// - Throws: ``StorageFailure`` where the copy cannot be completed; only ``end()`` follows.
    func step(_ call: CallContext) throws(StorageFailure) -> BackupProgress

    /// Ends it, complete or not. The file stays, and is the host's.
    func end()
}

/// How far a backup has come.
public struct BackupProgress: Sendable {
    /// Whether the file has the whole copy: there are no more steps.
    public var isComplete: Bool
    /// How many bytes have been copied.
    public var bytes: UInt64
    /// How many there will be; 0: that is not known.
    public var totalBytes: UInt64

    public init(isComplete: Bool, bytes: UInt64, totalBytes: UInt64 = 0) {
        self.isComplete = isComplete
        self.bytes = bytes
        self.totalBytes = totalBytes
    }
}
