import CRUDModel
import CRUDQuery

/// Reads by the backend's threads: what one iteration gathers goes to them as one batch.
final class WorkerStore: Store {
    private unowned let client: BackendClient
    // Unsafe, as a read must not count references: the loop keeps its clients, and so their stores, and outlives them.
    private unowned(unsafe) let loop: any LoopContext
    private let cache: BackendCache?
    /// Whether records may be cached, and for which input that was found out: before the first read of each, so that no
    /// read misses what had been written when it was sent.
    // Not checked for exclusive access at run time, which a profile of reads shows; one thread uses it.
    @exclusivity(unchecked) private var coherence = (input: UInt64.max, isKnown: false)
    private var reads: ReadBatch?

    init(_ client: BackendClient, loop: any LoopContext) {
        self.client = client
        self.loop = loop
        cache = client.backend.cache
    }

    func cacheKey(for collection: BackendCollection) -> CacheKey? {
        guard let cache, collection.cacheNumber != 0 else { return nil }
        let input = loop.inputCount
        if coherence.input != input {
            coherence = (input, !client.backend.isStorageDown && cache.followForeignWrites())
        }
        return coherence.isKnown ? cache.key(collection) : nil
    }

    func readNow(
        _ id: Span<UInt8>, in collection: BackendCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) -> Bool { false }

    func searchNow(_ task: SearchTask, for completion: any RequestCompletion) -> Bool { false }

    func pendingReads(for collection: BackendCollection) -> ReadBatch {
        if let reads { return reads }
        let batch = ReadBatch(deliver: client.deliver)
        reads = batch
        return batch
    }

    func submit(_ read: Read, for completion: any RequestCompletion) {
        let batch = pendingReads(for: read.collection)
        let position = batch.reads.count
        batch.append(read)
        batch.append(completion, position..<position + 1)
    }

    /// Takes what has been gathered.
    func takeReads() -> ReadBatch? { reads.take() }

    func flush() {
        if let batch = takeReads() { client.begin(batch) }
    }

    var hasPendingReads: Bool { reads != nil }
    var hasPendingReadsByID: Bool { reads?.reads.contains { !$0.isCount } ?? false }
    var holdsSnapshot: Bool { false }
    func releaseStaleSnapshot() {}
    func releaseSnapshot() {}
    func quiesce() { flush() }
    var isQuiescent: Bool { true }
}
