import CRUDModel
import CRUDPluginHost
import CRUDQuery

/// Reads on the event loop itself, where the plugin reads a record in microseconds. What may take longer, and what is
/// not open yet, goes to the backend's threads.
final class LoopStore: Store {
    private unowned let client: BackendClient
    private let worker: WorkerStore
    private var reader: SnapshotReader?
    /// What a read that has not been submitted yet copies its ids into; nil where that is the worker's batch.
    private var own: ReadBatch?

    init(_ client: BackendClient) {
        self.client = client
        worker = WorkerStore(client)
    }

    private func openReader(for collection: BackendCollection) -> SnapshotReader? {
        // A storage that is down is left to the backend, which refuses what comes.
        guard collection.isOpen, !client.backend.isStorageDown else { return nil }
        if let reader { return reader }
        reader = client.backend.reader(forLoop: client.loopNumber)
        return reader
    }

    func readNow(
        _ id: Span<UInt8>, in collection: BackendCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) -> Bool {
        guard let reader = openReader(for: collection) else { return false }
        try reader.read(id, in: collection, into: visitor)
        return true
    }

    func pendingReads(for collection: BackendCollection) -> ReadBatch {
        guard openReader(for: collection) != nil else {
            own = nil
            return worker.pendingReads(for: collection)
        }
        let batch = ReadBatch { _ in }
        own = batch
        return batch
    }

    func submit(_ read: Read, for completion: any RequestCompletion) {
        // The collection may have been opened since ``pendingReads(for:)``: what counts is where the ids are.
        guard let batch = own.take(), let reader else {
            return worker.submit(read, for: completion)
        }
        if case .count(let prefix) = read.kind {
            // Counting scans an index, which may take a while: never on the loop.
            var read = read
            let pending = worker.pendingReads(for: read.collection)
            // The buffer is copied before the batch goes.
            read.kind = .count(prefix: pending.store(unsafe batch.bytes(prefix).bindMemory(to: UInt8.self).span))
            return worker.submit(read, for: completion)
        }
        batch.append(read)
        batch.append(completion, 0..<1)
        reader.execute([batch])
        batch.complete()
    }

    func flush() { worker.flush() }
    var hasPendingReads: Bool { worker.hasPendingReads }

    // MARK: Snapshots

    var holdsSnapshot: Bool { reader?.holdsSnapshot ?? false }

    func releaseStaleSnapshot() {
        if let reader, reader.isStale { reader.releaseSnapshot() }
    }

    func releaseSnapshot() { reader?.releaseSnapshot() }

    /// The backend may be closed from now on, and its readers with it.
    func quiesce() {
        worker.flush()
        reader?.releaseSnapshot()
        reader = nil
    }

    var isQuiescent: Bool { true }
}
