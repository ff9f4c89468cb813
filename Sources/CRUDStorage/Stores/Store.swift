package import CRUDModel
package import CRUDQuery

/// How an event loop reads the collections of a backend: on the loop itself, over a channel to the backend's child, or
/// by the backend's threads. Which of the three is chosen once for each backend and loop.
package protocol Store: AnyObject {
    /// What records of a collection are cached under, as of the input that is being handled; nil: they are not cached.
    func cacheKey(for collection: BackendCollection) -> CacheKey?

    /// Reads a record without waiting, if this store can.
    ///
    /// - Parameter visitor: gets the record, if it exists.
    /// - Returns: false where a read has to be submitted.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    func readNow(
        _ id: Span<UInt8>, in collection: BackendCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) -> Bool

    /// The batch that the next submitted read joins, to copy its ids into.
    func pendingReads(for collection: BackendCollection) -> ReadBatch

    /// Submits a read whose ids stand in ``pendingReads(for:)``. It may complete before this returns.
    func submit(_ read: Read, for completion: any RequestCompletion)

    /// Executes a search without waiting, if this store can, and completes it.
    ///
    /// - Returns: false where it has to be submitted to the backend.
    func searchNow(_ task: SearchTask, for completion: any RequestCompletion) -> Bool

    /// Hands over what this iteration has gathered.
    func flush()
    /// Whether something has been gathered and not been handed over.
    var hasPendingReads: Bool { get }

    // MARK: Snapshots

    var holdsSnapshot: Bool { get }
    /// Releases the snapshot if it lacks a commit.
    func releaseStaleSnapshot()
    func releaseSnapshot()

    // MARK: Quiescing

    /// Passes what waits for a channel on to the backend's threads, and asks the plugin nothing more by itself.
    func quiesce()
    /// Whether nothing that the store has asked a child itself is outstanding.
    var isQuiescent: Bool { get }
}
