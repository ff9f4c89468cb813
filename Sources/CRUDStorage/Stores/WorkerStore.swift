import CRUDModel
import CRUDQuery

/// Reads by the backend's threads: what one iteration gathers goes to them as one batch.
final class WorkerStore: Store {
    private unowned let client: BackendClient
    private var reads: ReadBatch?

    init(_ client: BackendClient) {
        self.client = client
    }

    func cacheKey(for collection: BackendCollection) -> CacheKey? { nil }

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
    var holdsSnapshot: Bool { false }
    func releaseStaleSnapshot() {}
    func releaseSnapshot() {}
    func quiesce() { flush() }
    var isQuiescent: Bool { true }
}
