import CRUDModel

/// Carries out batches of reads with a reader, on the thread that owns it.
enum ReadRun {
    /// A reading thread's whole life: until the queue is closed.
    static func work(for backend: Backend, with reader: BackendReader) {
        var searches = Rotation<Search>()
        while true {
            switch backend.reads.take(patience: searches.isEmpty ? nil : .zero) {
            case .items(let items):
                var batches: [ReadBatch] = []
                for item in items {
                    if !item.isPrepared, !item.isReadable {
                        // A child was lost since the item was sent here.
                        if !backend.writes.append(item) { backend.refuse(item) }
                    } else if item.claim() {
                        if let batch = item as? ReadBatch { batches.append(batch) }
                        if let search = item as? Search { searches.append(search) }
                    }
                }
                carryOut(batches, with: reader)
                for batch in batches { batch.finish() }
                reader.endSnapshot()
            case .nothing, .woken: break
            case .closed: return searches.end()
            }
            searches.advance { $0.advance(with: reader) }
        }
    }

    /// Carries out batches; their results are set, they are not delivered yet.
    static func carryOut(_ batches: [ReadBatch], with reader: BackendReader) {
        for batch in batches { batch.prepareResults() }
        for lookup in Lookup.all(of: batches) { lookup.carryOut(with: reader) }
        for batch in batches {
            for (index, read) in batch.reads.enumerated() where read.isCount && batch.refusals[index] == nil {
                batch.results[index] = count(read, of: batch, reader)
            }
        }
    }

    private static func count(_ read: Read, of batch: ReadBatch, _ reader: BackendReader) -> ReadResult {
        do throws(CRUDError) {
            return .count(try reader.count(read.collection, prefix: batch.arena.bytes(read.prefix)))
        } catch {
            return .failed(error)
        }
    }
}
