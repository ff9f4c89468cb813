import CRUDModel
import CRUDQuery
import CRUDThreads

/// Executes reads and searches with a reader, on the thread that owns it.
enum ReadWorker {
    /// A reading thread's whole life: until its queue is closed.
    static func run(for backend: Backend, _ queue: WorkQueue<WorkItem>, with reader: SnapshotReader) {
        var searches = RoundRobin<SearchTask>()
        while true {
            switch queue.take(timeout: searches.isEmpty ? nil : .zero) {
            case .items(let items):
                var batches: [ReadBatch] = []
                for item in items {
                    if !item.isPrepared, !item.isReadable {
                        // A child was lost since the item was sent here.
                        backend.submitToWriter(item)
                    } else if backend.isStorageDown {
                        if item.claim() { backend.refuse(item) }
                    } else if item.claim() {
                        if let batch = item as? ReadBatch { batches.append(batch) }
                        if let search = item as? SearchTask { searches.append(search) }
                    }
                }
                execute(batches, with: reader)
                for batch in batches { batch.finish() }
                reader.releaseSnapshot()
            case .timedOut, .woken: break
            case .closed: return searches.end()
            }
            if backend.isStorageDown { searches.end() }
            searches.advance { $0.advance(with: reader, of: backend, child: backend.child) }
        }
    }

    /// Executes batches: their results are set, they are not delivered yet.
    static func execute(_ batches: [ReadBatch], with reader: SnapshotReader) {
        for batch in batches { batch.prepareResults() }
        for call in CoalescedRead.all(of: batches) { call.execute(with: reader) }
        for batch in batches {
            for (position, read) in batch.reads.enumerated() {
                guard case .count(let prefix) = read.kind, !batch.isRefused(position) else { continue }
                batch.set(count(Array(batch.bytes(prefix)), in: read.collection, reader), at: position)
            }
        }
    }

    private static func count(_ prefix: [UInt8], in collection: BackendCollection, _ reader: SnapshotReader)
        -> ReadResult
    {
        do throws(CRUDError) {
            return .count(try reader.count(RecordScan(idPrefix: prefix), of: collection))
        } catch {
            return .failed(error)
        }
    }
}
