import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// Some records on their way to another place: read in the old one, encoded for the new one, then stored and compared
/// there. What is not there any more in the old place is removed from the new one.
final class CopyPage: @unchecked Sendable {
    // @unchecked: handed from thread to thread, one owner at a time; the backends' queues order that.

    private(set) var ids: [[UInt8]]
    /// Whether copies have the sequence numbers of their originals.
    private let keepsSequences: Bool
    /// For each id its record as it is to be in the new place; nil where there is none.
    private var records: [Record?]

    fileprivate struct Record {
        var item: [UInt8]
        var revision: [UInt8]
        var expiresAt: Int64
        var sequence: UInt64
        /// The keys of the new place's indexes.
        var keys = IndexKeys.none
    }

    /// Whether there was more to read than one page may hold; it is worth nothing then.
    private(set) var isTooLarge = false

    /// The longest text of an item.
    private static let maximumTextBytes = 64 << 20
    /// How many bytes of several items a page may hold.
    private static let maximumBytes = 8 << 20

    init(_ ids: [[UInt8]], keepsSequences: Bool = false) {
        self.ids = ids
        self.keepsSequences = keepsSequences
        records = Array(repeating: nil, count: ids.count)
    }

    // MARK: The old place

    /// Reads the originals, as they are now.
    func read(from source: BackendCollection, with reader: SnapshotReader) throws(CRUDError) {
        var bytes = 0
        try reader.read(Array(ids.indices), of: ids, in: source) { position, record in
            bytes += record.item.count
            isTooLarge = bytes > Self.maximumBytes && ids.count > 1
            records[position] = Record(
                item: Array(record.item), revision: Array(record.revision), expiresAt: record.expiresAt,
                sequence: record.sequence)
            return !isTooLarge
        }
    }

    /// Leaves out records whose numbers are not known, which are to be copied once they are.
    ///
    /// - Parameter lastSequence: no number that the old place has given is higher.
    /// - Returns: their ids.
    func leaveOutUnnumbered(through lastSequence: UInt64) -> [[UInt8]] {
        let isNumbered = records.map { record in record.map { 1...max(1, lastSequence) ~= $0.sequence } ?? true }
        let unnumbered = zip(ids, isNumbered).filter { !$1 }.map(\.0)
        if unnumbered.isEmpty { return [] }
        ids = zip(ids, isNumbered).filter(\.1).map(\.0)
        records = zip(records, isNumbered).filter(\.1).map(\.0)
        return unnumbered
    }

    /// Those of which the old place has no record.
    var missing: [[UInt8]] { ids.indices.filter { records[$0] == nil }.map { ids[$0] } }

    // MARK: Between

    /// Encodes the items for the new place.
    ///
    /// - Throws: `corrupt` for an original that cannot be decoded, `unsupported` for one that the format cannot hold;
    ///   the message names the record.
    func encode(from source: BackendCollection, for target: BackendCollection) throws(CRUDError) {
        var encoder = ItemTranscoder(from: source.codec, to: target.codec, target.numberedLayout)
        for (position, record) in records.enumerated() {
            guard var record else { continue }
            do throws(CRUDError) {
                guard !record.item.isEmpty else { throw CRUDError(.corrupt, "its original cannot be decoded") }
                let isSame = source.format == target.format
                (record.item, record.keys) = try encoder.encode(record.item, isSame: isSame, Self.maximumTextBytes)
            } catch {
                throw error.about(ids[position], in: target.name)
            }
            records[position] = record
        }
    }

    // MARK: The new place

    /// Stores what differs from its original, and compares every record with that.
    ///
    /// - Throws: why a record cannot be stored; the message names it.
    func store(in target: BackendCollection, with storage: OpenStorage) throws(CRUDError) {
        let reader = try storage.reader()
        defer { reader.releaseSnapshot() }
        let now = CallContext.now
        // One that has expired since it was read is in neither place: an older copy of it is removed.
        for position in records.indices where records[position]?.hasExpired(by: now) == true { records[position] = nil }
        let outdated = try positions(ids.indices, thatDifferIn: target, reader)
        guard !outdated.isEmpty else { return }
        let batch = try batch(outdated, target, storage)
        let outcomes = storage.apply(batch.pluginMutations[...])
        for (position, outcome) in zip(outdated, outcomes) {
            switch outcome {
            case .applied, .notFound: continue
            case .failed(let status): throw storage.failures.error(status: status).about(ids[position], in: target.name)
            case .refused(let error): throw error.about(ids[position], in: target.name)
            case .exists, .mismatch: break
            }
            throw CRUDError(.internalError, "the backend refuses its copy").about(ids[position], in: target.name)
        }
        if let different = try positions(outdated, thatDifferIn: target, reader).first {
            // To store it again would change nothing: a trigger, say, has its reasons.
            throw CRUDError(.corrupt, "what backend \(storage.failures.backend) has stored differs from the original")
                .about(ids[different], in: target.name)
        }
    }

    /// The mutations that make the new place agree.
    private func batch(
        _ positions: [Int], _ target: BackendCollection, _ storage: OpenStorage
    ) throws(CRUDError) -> MutationBatch {
        let holdsExpiry = storage.opened.capabilities.contains(.expiry)
        let batch = MutationBatch { _ in }
        for position in positions {
            let name = ids[position]
            let id = batch.store(name.span)
            guard let record = records[position] else {
                var removal = Mutation(.remove, in: target, id: id, precondition: .any)
                if keepsSequences { removal.sequence = 0 }
                batch.append(removal)
                continue
            }
            guard record.expiresAt == 0 || holdsExpiry else {
                throw CRUDError(.unsupported, "it expires, and backend \(storage.failures.backend) cannot hold that")
                    .about(ids[position], in: target.name)
            }
            var mutation = Mutation(
                .put, in: target, id: id, precondition: .any, item: batch.store(record.item.span),
                revision: batch.store(record.revision.span))
            mutation.expiresAt = record.expiresAt
            if keepsSequences { mutation.sequence = record.sequence }
            mutation.keys = batch.store(record.keys)
            batch.append(mutation)
        }
        return batch
    }

    /// Which of the records differ from what is stored.
    private func positions(
        _ positions: some Sequence<Int>, thatDifferIn target: BackendCollection, _ reader: SnapshotReader
    ) throws(CRUDError) -> [Int] {
        var isEqual = records.map { $0 == nil }
        let asked = Array(positions)
        try reader.read(asked, of: ids, in: target) { position, found in
            isEqual[position] = records[position]?.isStored(as: found, withSequence: keepsSequences) ?? false
            return true
        }
        let now = CallContext.now
        return asked.filter { !isEqual[$0] && records[$0]?.hasExpired(by: now) != true }
    }
}

extension CopyPage.Record {
    fileprivate func hasExpired(by now: Int64) -> Bool { expiresAt != 0 && expiresAt <= now }

    /// Whether that is the record: revision, expiry and item.
    ///
    /// - Parameter withSequence: whether it has to have the same sequence number as well.
    fileprivate func isStored(as found: FoundRecord, withSequence: Bool) -> Bool {
        expiresAt == found.expiresAt && (!withSequence || sequence == found.sequence)
            && found.revision.elementsEqual(revision) && found.item.elementsEqual(item)
    }
}

/// Converts items from one format to another, and makes their index keys.
struct ItemTranscoder: ~Copyable {
    private let source: Codec
    private let target: Codec
    private var keys: RecordKeys
    /// The number of the layout by which keys are made; 0: no keys are.
    private let layout: UInt32
    private var normalization = ItemNormalization()

    init(from source: Codec, to target: Codec, _ layout: BackendCollection.NumberedLayout) {
        self.source = source
        self.target = target
        keys = RecordKeys(layout.layout.indexPaths)
        self.layout = layout.layout.indexPaths.isEmpty ? 0 : layout.number
    }

    /// - Parameter isSame: whether the formats are the same, so that the bytes stay what they are.
    mutating func encode(
        _ stored: [UInt8], isSame: Bool, _ maximumBytes: Int
    ) throws(CRUDError) -> (item: [UInt8], keys: IndexKeys) {
        // What cannot be decoded has no keys, in the old place as in the new one.
        if isSame { return (stored, indexKeys(layout == 0 ? nil : keys.keys(ofStored: stored.span, source))) }
        var text: [UInt8] = []
        if source.keepsText {
            guard isJSON(stored.span) else { throw CRUDError(.corrupt, "its original is not valid JSON") }
            text = stored
        } else {
            try source.decode(stored: stored.span, into: &text, maximumBytes: maximumBytes)
        }
        if let normalized = normalization.normalized(text.span) { text = normalized }
        var encoded: [UInt8] = []
        try target.encode(item: text.span, into: &encoded)
        return (encoded, indexKeys(layout == 0 ? nil : keys.keys(of: text.span)))
    }

    private func indexKeys(_ made: [[UInt8]]?) -> IndexKeys { made.map { IndexKeys($0, layout: layout) } ?? .none }

    private func isJSON(_ text: Span<UInt8>) -> Bool {
        var scanner = JSONScanner()
        return (try? scanner.value(text)) != nil && scanner.isAtEnd(text)
    }
}

extension SnapshotReader {
    /// Reads some of a list of ids.
    ///
    /// - Parameter body: gets each record that is there, and the position of its id in `ids`; returns whether further
    ///   ones are wanted.
    fileprivate func read(
        _ positions: [Int], of ids: [[UInt8]], in collection: BackendCollection,
        _ body: (Int, FoundRecord) -> Bool
    ) throws(CRUDError) {
        var arena = ByteArena()
        let places = positions.map { position in
            let id = ids[position]
            return arena.append(id.span)
        }
        let raw = places.map { crudd_bytes(arena.bytes($0)) }
        try withoutActuallyEscaping(body) { body throws(CRUDError) in
            let sink = ClosureSink { body(positions[$0], $1) }
            try read(raw.span, in: collection, into: sink)
        }
    }
}

/// Passes records on to a closure.
private final class ClosureSink: ReadSink {
    private let body: (Int, FoundRecord) -> Bool

    init(_ body: @escaping (Int, FoundRecord) -> Bool) {
        self.body = body
    }

    func receive(index: Int, _ record: FoundRecord) -> Bool { body(index, record) }
}
