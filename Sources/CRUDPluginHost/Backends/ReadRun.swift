import CRUDModel
import CRUDPluginABI

/// Carries out batches of reads with a reader, on the thread that owns it.
enum ReadRun {
    /// A reading thread's whole life: until the queue is closed.
    static func work(_ queue: WorkQueue, with reader: BackendReader) {
        while true {
            switch queue.take(patience: nil) {
            case .items(let items):
                for item in items where item.claim() {
                    if let batch = item as? ReadBatch { carryOut(batch, with: reader) }
                    item.finish()
                }
                reader.endSnapshot()
            case .nothing: continue
            case .closed: return
            }
        }
    }

    /// Carries out one batch; its results are set, it is not delivered yet.
    static func carryOut(_ batch: ReadBatch, with reader: BackendReader) {
        batch.results = batch.reads.map { read in
            do throws(CRUDError) {
                switch read.kind {
                case .records(let ids): return .records(try find(ids, read, in: batch, reader, withItems: true))
                case .existence(let ids): return .records(try find(ids, read, in: batch, reader, withItems: false))
                case .count: return .count(try reader.count(read.collection))
                }
            } catch {
                return .failed(error)
            }
        }
    }

    private static func find(
        _ ids: [ByteArena.Place], _ read: Read, in batch: ReadBatch, _ reader: BackendReader, withItems: Bool
    ) throws(CRUDError) -> [FoundRecord?] {
        let sink = FoundRecords(batch, count: ids.count)
        let places = ids.map { crudd_bytes(batch.arena.bytes($0)) }
        try reader.read(places.span, in: read.collection, withItems: withItems, into: sink)
        return sink.records
    }

    /// Keeps what a read finds in its batch.
    private final class FoundRecords: RecordSink {
        private let batch: ReadBatch
        private(set) var records: [FoundRecord?]

        init(_ batch: ReadBatch, count: Int) {
            self.batch = batch
            records = Array(repeating: nil, count: count)
        }

        func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) {
            guard records.indices.contains(index) else { return }
            records[index] = FoundRecord(item: batch.keep(item), revision: batch.keep(revision))
        }
    }
}
