import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// Neighbouring reads of one collection as one call of the plugin, whichever requests they come from. A plugin in a
/// child process is a round trip away, and many a database reads many ids at the price of one.
final class CoalescedRead: ReadSink {
    let collection: BackendCollection
    /// Whether items are wanted, not just whether they exist.
    let withItems: Bool

    /// Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing
    /// that is called during an access comes back to it.
    private struct State {
        var ids: [crudd_bytes] = []
        var parts: [Part] = []
        /// The part that the last record belonged to: records come in the order of the ids, mostly.
        var current = 0
    }

    @exclusivity(unchecked) private var state = State()

    /// The most ids of one call that several requests share.
    private static let maximumIDs = 1000
    /// The most ids of a read that shares its call: one that turns out to be too long ends its call only where nobody
    /// else waits for that.
    private static let maximumSharedIDs = 16

    /// The ids of one read.
    private struct Part {
        let batch: ReadBatch
        let position: Int
        /// Where its ids stand among those of all.
        let range: Range<Int>
        /// Which ids of the read they are; nil: all.
        let places: [Int]?
        var bytesLeft: Int
        var records: [StoredRecord?]

        /// Whether there was more than may be kept.
        var isTooLong: Bool { bytesLeft < 0 }
    }

    var ids: [crudd_bytes] { state.ids }

    /// How many bytes of records there is room for, where one read of several may have more; nil: it is not worth
    /// telling, or others share the call.
    var maximumBytes: Int? {
        guard withItems, state.parts.count == 1, state.ids.count > 1 else { return nil }
        return max(0, state.parts[0].bytesLeft)
    }

    /// The calls that it takes to read the ids of batches.
    static func all(of batches: [ReadBatch]) -> [CoalescedRead] {
        var calls: [CoalescedRead] = []
        for batch in batches {
            for (position, read) in batch.reads.enumerated() where !batch.isRefused(position) {
                guard let ids = read.kind.ids, calls.last?.append(read, ids, at: position, of: batch) != true
                else { continue }
                calls.append(CoalescedRead(read, ids, at: position, of: batch))
            }
        }
        return calls
    }

    private init(_ read: Read, _ ids: [ByteArena.Place], at position: Int, of batch: ReadBatch) {
        collection = read.collection
        withItems = read.kind.withItems
        add(read, ids, at: position, of: batch)
    }

    /// Adds another read; false if it cannot share the call.
    private func append(_ read: Read, _ ids: [ByteArena.Place], at position: Int, of batch: ReadBatch) -> Bool {
        guard read.collection === collection, read.kind.withItems == withItems,
            state.ids.count + ids.count <= Self.maximumIDs,
            max(ids.count, state.parts.first?.range.count ?? 0) <= Self.maximumSharedIDs
        else { return false }
        add(read, ids, at: position, of: batch)
        return true
    }

    private func add(_ read: Read, _ ids: [ByteArena.Place], at position: Int, of batch: ReadBatch) {
        let first = state.ids.count
        var bytesLeft = read.maximumBytes
        var places: [Int]?
        if read.found.isEmpty {
            for id in ids { state.ids.append(crudd_bytes(batch.bytes(id))) }
        } else {
            let missing = ids.indices.filter { read.found[$0] == nil }
            for place in missing { state.ids.append(crudd_bytes(batch.bytes(ids[place]))) }
            for case let record? in read.found { bytesLeft -= record.byteCount }
            places = missing
        }
        state.parts.append(
            Part(
                batch: batch, position: position, range: first..<state.ids.count, places: places, bytesLeft: bytesLeft,
                records: read.found.isEmpty ? Array(repeating: nil, count: ids.count) : read.found))
    }

    /// Makes the call and sets the reads' results.
    func execute(with reader: SnapshotReader) {
        do throws(CRUDError) {
            // A copy, for the state is used while records come.
            let ids = state.ids
            try reader.read(ids.span, in: collection, withItems: withItems, into: self)
            succeed()
        } catch {
            for call in fail(error) { call.execute(with: reader) }
        }
    }

    /// The call has returned: sets the reads' results to what was received.
    func succeed() {
        for part in state.parts {
            part.batch.set(
                part.isTooLong ? .partial(part.records, lacking: -part.bytesLeft) : .records(part.records),
                at: part.position)
        }
    }

    /// The call has failed: sets the reads' results to that.
    ///
    /// - Returns: the calls to make instead. Where one read alone may be the cause, each is tried by itself.
    func fail(_ error: CRUDError) -> [CoalescedRead] {
        guard state.parts.count > 1, error.mayConcernOneAlone else {
            for part in state.parts { part.batch.set(.failed(error), at: part.position) }
            return []
        }
        return state.parts.compactMap { part in
            let read = part.batch.reads[part.position]
            return read.kind.ids.map { CoalescedRead(read, $0, at: part.position, of: part.batch) }
        }
    }

    func receive(index: Int, _ record: FoundRecord) -> Bool {
        guard state.ids.indices.contains(index) else { return true }
        while index >= state.parts[state.current].range.upperBound { state.current += 1 }
        while index < state.parts[state.current].range.lowerBound { state.current -= 1 }
        let current = state.current
        let number = index - state.parts[current].range.lowerBound
        let place = state.parts[current].places?[number] ?? number
        let item = withItems ? record.item : UnsafeRawBufferPointer(start: nil, count: 0)
        let batch = state.parts[current].batch
        let lacking = item.count + record.revision.count - max(0, state.parts[current].bytesLeft)
        state.parts[current].bytesLeft -= item.count + record.revision.count
        // A record that comes twice is not kept twice: a child must not be able to fill the daemon's memory. It counts,
        // as the child may count it.
        guard state.parts[current].records[place] == nil else {
            return !state.parts[current].isTooLong || state.parts.count > 1
        }
        if lacking > 0, state.parts[current].bytesLeft + lacking >= 0,
            batch.takeExtra(lacking, at: state.parts[current].position)
        {
            state.parts[current].bytesLeft += lacking
        }
        guard !state.parts[current].isTooLong else { return state.parts.count > 1 }
        state.parts[current].records[place] = StoredRecord(
            item: batch.keep(item), revision: batch.keep(record.revision), expiresAt: record.expiresAt)
        return true
    }
}

extension Read.Kind {
    /// The ids that are to be read; nil where none are.
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

extension CRUDError {
    /// Whether one record or one request of a batch may be the cause, so that the others are to be tried without it.
    var mayConcernOneAlone: Bool { [.corrupt, .internalError, .unsupported].contains(code) }
}
