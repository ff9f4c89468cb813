package import CRUDModel
package import CRUDQuery

/// How an event loop reads the collections of a backend: by the backend's threads, which get what one iteration gathers
/// as one batch. A ``LoopStore`` reads on the loop itself, a ``ChannelStore`` over channels to the backend's child, and
/// both leave to the threads what they cannot. One of the three is chosen once for each backend and loop.
package class Store {
    final unowned let client: BackendClient
    // Unsafe, as a read must not count references: the loop keeps its clients, and so their stores, and outlives them.
    final unowned(unsafe) let loop: any LoopContext
    final let cache: BackendCache?
    /// Whether records may be cached, and for which input that was found out: before the first read of each, so that no
    /// read misses what had been written when it was sent.
    // Not checked for exclusive access at run time, which a profile of reads shows; one thread uses it.
    @exclusivity(unchecked) private final var coherence = (input: UInt64.max, isKnown: false)
    private final var reads: ReadBatch?

    init(_ client: BackendClient, loop: any LoopContext) {
        self.client = client
        self.loop = loop
        cache = client.backend.cache
    }

    /// What records of a collection are cached under, as of the input that is being handled; nil: they are not cached.
    package func cacheKey(for collection: BackendCollection) -> CacheKey? {
        guard let cache, collection.cacheNumber != 0 else { return nil }
        let input = loop.inputCount
        if coherence.input != input {
            coherence = (input, !client.backend.isStorageDown && cache.followForeignWrites())
        }
        return coherence.isKnown ? cache.key(collection) : nil
    }

    /// Reads a record without waiting, if this store can.
    ///
    /// - Parameter visitor: gets the record, if it exists.
    /// - Returns: false where a read has to be submitted.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func readNow(
        _ id: Span<UInt8>, in collection: BackendCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) -> Bool { false }

    /// The batch that the next submitted read joins, to copy its ids into.
    package func pendingReads(for collection: BackendCollection) -> ReadBatch { gatheredReads }

    private final var gatheredReads: ReadBatch {
        if let reads { return reads }
        let batch = ReadBatch(deliver: client.deliver)
        reads = batch
        return batch
    }

    /// Submits a read whose ids stand in ``pendingReads(for:)``. It may complete before this returns.
    package func submit(_ read: Read, for completion: any RequestCompletion) {
        let batch = gatheredReads
        let position = batch.reads.count
        batch.append(read)
        batch.append(completion, position..<position + 1)
    }

    /// Executes a search without waiting, if this store can, and completes it.
    ///
    /// - Returns: false where it has to be submitted to the backend.
    package func searchNow(_ task: SearchTask, for completion: any RequestCompletion) -> Bool { false }

    /// Hands over what this iteration has gathered.
    func flush() {
        if let batch = takeReads() { client.begin(.read(.batch(batch))) }
    }

    /// Takes what has been gathered.
    final func takeReads() -> ReadBatch? { reads.take() }

    /// Whether something has been gathered and not been handed over.
    final var hasPendingReads: Bool { reads != nil }
    final var hasPendingReadsByID: Bool { reads?.reads.contains { !$0.isCount } ?? false }

    // MARK: Snapshots

    package var holdsSnapshot: Bool { false }
    /// Releases the snapshot if it lacks a commit.
    package func releaseStaleSnapshot() {}
    package func releaseSnapshot() {}

    // MARK: Quiescing

    /// Passes what waits for a channel on to the backend's threads, and asks the plugin nothing more by itself.
    func quiesce() { flush() }
    /// Whether nothing that the store has asked a child itself is outstanding.
    var isQuiescent: Bool { true }
}
