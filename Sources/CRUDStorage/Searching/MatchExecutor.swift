import CRUDModel
import CRUDPluginCalls

/// Finds the records of a ``BulkDelete``.
protocol MatchExecutor: AnyObject {
    /// The records that the last ``find(with:isAbandoned:)`` has found, by id.
    var found: [(id: [UInt8], revision: [UInt8])] { get }
    /// Records that cannot be decoded.
    var corrupt: [[UInt8]] { get }

    /// Finds further records, as many as one call of the plugin should remove at the most.
    ///
    /// - Parameter isAbandoned: may be called on another thread.
    /// - Returns: whether these are the last.
    func find(with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool) throws(CRUDError) -> Bool

    /// Whether to look for further ones would be in vain: it waits for another thread or process.
    var isWaiting: Bool { get }

    /// The search resumes with the record at `position` of ``found``.
    func rewind(to position: Int)

    /// Nothing more is to be found.
    func end()
}
