import CRUDModel
import CRUDPluginABI

/// Carries out batches of reads with a reader, on the thread that owns it.
enum ReadRun {
    /// A reading thread's whole life: until the queue is closed.
    static func work(_ queue: WorkQueue, with reader: BackendReader) {
        var searches = Rotation<Search>()
        while true {
            switch queue.take(patience: searches.isEmpty ? nil : .zero) {
            case .items(let items):
                for item in items where item.claim() {
                    if let search = item as? Search {
                        searches.append(search)
                    } else {
                        if let batch = item as? ReadBatch { carryOut(batch, with: reader) }
                        item.finish()
                    }
                }
                reader.endSnapshot()
            case .nothing: break
            case .closed: return searches.end()
            }
            searches.advance { $0.advance(with: reader) }
        }
    }

    /// Carries out one batch; its results are set, it is not delivered yet.
    static func carryOut(_ batch: ReadBatch, with reader: BackendReader) {
        batch.results = batch.reads.enumerated().map { index, read in
            if let refusal = batch.refusals[index] { return .failed(refusal) }
            do throws(CRUDError) {
                switch read.kind {
                case .records(let ids): return try find(ids, read, in: batch, reader, withItems: true)
                case .existence(let ids): return try find(ids, read, in: batch, reader, withItems: false)
                case .count:
                    return .count(try reader.count(read.collection, prefix: batch.arena.bytes(read.prefix)))
                }
            } catch {
                return .failed(error)
            }
        }
    }

    private static func find(
        _ ids: [ByteArena.Place], _ read: Read, in batch: ReadBatch, _ reader: BackendReader, withItems: Bool
    ) throws(CRUDError) -> ReadResult {
        let sink = FoundRecords(batch, count: ids.count, maximumBytes: read.maximumBytes)
        let places = ids.map { crudd_bytes(batch.arena.bytes($0)) }
        try reader.read(places.span, in: read.collection, withItems: withItems, into: sink)
        return sink.isTooLong ? .tooLong : .records(sink.records)
    }

    /// Keeps what a read finds in its batch.
    private final class FoundRecords: RecordSink {
        private let batch: ReadBatch
        private(set) var records: [FoundRecord?]
        /// Whether there was more than may be kept.
        private(set) var isTooLong = false
        private var bytesLeft: Int

        init(_ batch: ReadBatch, count: Int, maximumBytes: Int) {
            self.batch = batch
            bytesLeft = maximumBytes
            records = Array(repeating: nil, count: count)
        }

        func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
            guard records.indices.contains(index) else { return true }
            bytesLeft -= item.count + revision.count
            isTooLong = bytesLeft < 0
            guard !isTooLong else { return false }
            records[index] = FoundRecord(item: batch.keep(item), revision: batch.keep(revision))
            return true
        }
    }
}
