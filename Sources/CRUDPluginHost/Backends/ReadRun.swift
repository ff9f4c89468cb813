import CRUDModel
import CRUDPluginABI

/// Carries out batches of reads with a reader, on the thread that owns it.
///
/// Neighbouring reads of one collection become one call of the plugin, whichever requests they come from: a plugin in a
/// child process is a round trip away, and many a database answers many ids at the price of one.
enum ReadRun {
    /// A call asks for no more ids than so many requests' together.
    private static let maximumIDs = 1000

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
        var lookup: Lookup?
        for batch in batches {
            batch.results = Array(repeating: .records([]), count: batch.reads.count)
            for (index, read) in batch.reads.enumerated() {
                if let refusal = batch.refusals[index] {
                    batch.results[index] = .failed(refusal)
                    continue
                }
                switch read.kind {
                case .records(let ids), .existence(let ids):
                    if lookup?.append(read, ids, at: index, of: batch, maximum: maximumIDs) == true { continue }
                    lookup?.carryOut(with: reader)
                    lookup = Lookup(read, ids, at: index, of: batch)
                case .count: batch.results[index] = count(read, of: batch, reader)
                }
            }
        }
        lookup?.carryOut(with: reader)
    }

    private static func count(_ read: Read, of batch: ReadBatch, _ reader: BackendReader) -> ReadResult {
        do throws(CRUDError) {
            return .count(try reader.count(read.collection, prefix: batch.arena.bytes(read.prefix)))
        } catch {
            return .failed(error)
        }
    }
}

/// Neighbouring reads that ask one collection for the same.
private final class Lookup: RecordSink {
    private let collection: BackendCollection
    private let withItems: Bool
    private var ids: [crudd_bytes] = []
    private var parts: [Part] = []
    /// The part that the last record belonged to: records come in the order of the ids, mostly.
    private var current = 0

    /// What one read asks for.
    private struct Part {
        let batch: ReadBatch
        let index: Int
        /// Where its ids stand among those of all.
        let range: Range<Int>
        var bytesLeft: Int
        var records: [FoundRecord?]

        /// Whether there was more than may be kept.
        var isTooLong: Bool { bytesLeft < 0 }
    }

    init(_ read: Read, _ ids: [ByteArena.Place], at index: Int, of batch: ReadBatch) {
        collection = read.collection
        withItems = read.kind.withItems
        add(read, ids, at: index, of: batch)
    }

    /// Adds another read; false if it cannot go with those before it.
    func append(_ read: Read, _ ids: [ByteArena.Place], at index: Int, of batch: ReadBatch, maximum: Int) -> Bool {
        guard read.collection === collection, read.kind.withItems == withItems, self.ids.count + ids.count <= maximum
        else { return false }
        add(read, ids, at: index, of: batch)
        return true
    }

    private func add(_ read: Read, _ ids: [ByteArena.Place], at index: Int, of batch: ReadBatch) {
        let range = self.ids.count..<self.ids.count + ids.count
        for id in ids { self.ids.append(crudd_bytes(batch.arena.bytes(id))) }
        parts.append(
            Part(
                batch: batch, index: index, range: range, bytesLeft: read.maximumBytes,
                records: Array(repeating: nil, count: ids.count)))
    }

    /// Makes the call and sets the reads' results. What may be the fault of one read alone is not made that of the
    /// others: they are tried one by one.
    func carryOut(with reader: BackendReader) {
        do throws(CRUDError) {
            try reader.read(ids.span, in: collection, withItems: withItems, into: self)
            for part in parts {
                part.batch.results[part.index] = part.isTooLong ? .tooLong : .records(part.records)
            }
        } catch {
            guard parts.count > 1, [.corrupt, .internalError, .unsupported].contains(error.code) else {
                for part in parts { part.batch.results[part.index] = .failed(error) }
                return
            }
            for part in parts { Lookup(part.batch, part.index)?.carryOut(with: reader) }
        }
    }

    /// A read of its own.
    private convenience init?(_ batch: ReadBatch, _ index: Int) {
        switch batch.reads[index].kind {
        case .records(let ids), .existence(let ids): self.init(batch.reads[index], ids, at: index, of: batch)
        case .count: return nil
        }
    }

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        guard ids.indices.contains(index) else { return true }
        while index >= parts[current].range.upperBound { current += 1 }
        while index < parts[current].range.lowerBound { current -= 1 }
        parts[current].bytesLeft -= item.count + revision.count
        guard !parts[current].isTooLong else { return parts.count > 1 }
        let batch = parts[current].batch
        let record = FoundRecord(item: batch.keep(item), revision: batch.keep(revision))
        parts[current].records[index - parts[current].range.lowerBound] = record
        return true
    }
}

extension Read.Kind {
    /// Whether items are wanted, not just whether they are there.
    fileprivate var withItems: Bool {
        if case .records = self { true } else { false }
    }
}
