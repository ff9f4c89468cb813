import CRUDModel
import CRUDPluginABI

/// Neighbouring reads that ask one collection for the same: one call of the plugin, whichever requests they come from. A
/// plugin in a child process is a round trip away, and many a database answers many ids at the price of one.
final class Lookup: RecordSink {
    let collection: BackendCollection
    /// Whether items are wanted, not just whether they are there.
    let withItems: Bool
    // None is checked for exclusive access at run time, which a profile of reads shows: one thread uses them, and nothing
    // that is called during an access comes back to them.

    @exclusivity(unchecked) private(set) var ids: [crudd_bytes] = []
    @exclusivity(unchecked) private var parts: [Part] = []
    /// The part that the last record belonged to: records come in the order of the ids, mostly.
    @exclusivity(unchecked) private var current = 0

    /// A call asks for no more ids than so many requests' together.
    private static let maximumIDs = 1000

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

    /// The calls that it takes to look up what batches ask for.
    static func all(of batches: [ReadBatch]) -> [Lookup] {
        var lookups: [Lookup] = []
        for batch in batches {
            for (index, read) in batch.reads.enumerated() where batch.refusals[index] == nil {
                guard let ids = read.kind.ids, lookups.last?.append(read, ids, at: index, of: batch) != true
                else { continue }
                lookups.append(Lookup(read, ids, at: index, of: batch))
            }
        }
        return lookups
    }

    private init(_ read: Read, _ ids: [ByteArena.Place], at index: Int, of batch: ReadBatch) {
        collection = read.collection
        withItems = read.kind.withItems
        add(read, ids, at: index, of: batch)
    }

    /// Adds another read; false if it cannot go with those before it.
    private func append(_ read: Read, _ ids: [ByteArena.Place], at index: Int, of batch: ReadBatch) -> Bool {
        guard read.collection === collection, read.kind.withItems == withItems,
            self.ids.count + ids.count <= Self.maximumIDs
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

    /// Makes the call and sets the reads' results.
    func carryOut(with reader: BackendReader) {
        do throws(CRUDError) {
            try reader.read(ids.span, in: collection, withItems: withItems, into: self)
            succeed()
        } catch {
            for lookup in fail(error) { lookup.carryOut(with: reader) }
        }
    }

    /// The call is over: sets the reads' results to what was received.
    func succeed() {
        for part in parts {
            part.batch.results[part.index] = part.isTooLong ? .tooLong : .records(part.records)
        }
    }

    /// The call has failed: sets the reads' results to that.
    ///
    /// - Returns: the calls to make instead. What may be the fault of one read alone is not made that of the others: they
    ///   are tried one by one.
    func fail(_ error: CRUDError) -> [Lookup] {
        guard parts.count > 1, [.corrupt, .internalError, .unsupported].contains(error.code) else {
            for part in parts { part.batch.results[part.index] = .failed(error) }
            return []
        }
        return parts.compactMap { part in
            let read = part.batch.reads[part.index]
            return read.kind.ids.map { Lookup(read, $0, at: part.index, of: part.batch) }
        }
    }

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        guard ids.indices.contains(index) else { return true }
        while index >= parts[current].range.upperBound { current += 1 }
        while index < parts[current].range.lowerBound { current -= 1 }
        let place = index - parts[current].range.lowerBound
        // What comes again, or was not asked for, is not kept: a child must not be able to fill the daemon's memory.
        guard parts[current].records[place] == nil else { return true }
        let item = withItems ? item : UnsafeRawBufferPointer(start: nil, count: 0)
        parts[current].bytesLeft -= item.count + revision.count
        guard !parts[current].isTooLong else { return parts.count > 1 }
        let batch = parts[current].batch
        parts[current].records[place] = FoundRecord(item: batch.keep(item), revision: batch.keep(revision))
        return true
    }
}

extension Read.Kind {
    /// The ids that are to be looked up; nil where none are.
    fileprivate var ids: [ByteArena.Place]? {
        switch self {
        case .records(let ids), .existence(let ids): ids
        case .count: nil
        }
    }

    fileprivate var withItems: Bool {
        if case .records = self { true } else { false }
    }
}
