import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// Reads records for mutations that depend on them, on the writing thread.
final class CurrentRecordReader: ReadSink {
    /// A record as it stands.
    struct Record {
        var item: [UInt8]
        var revision: [UInt8]
        var expiresAt: Int64
    }

    private let reader: SnapshotReader
    /// By the position of the id.
    private var found: [Record?] = []
    private var bytes = 0

    /// How many bytes of items may be read in one call, unless it is a single one.
    private static let maximumBytes = 8 << 20

    init(_ reader: SnapshotReader) {
        self.reader = reader
    }

    /// The record that a mutation is about; nil if there is none.
    ///
    /// - Parameters:
    ///   - withItem: whether the item is wanted, too.
    ///   - toWrite: whether the mutation is about to be made, on condition that the record is still what is read, and
    ///     that has failed before.
    func record(
        of mutation: Mutation, in batch: MutationBatch, withItem: Bool, toWrite: Bool
    ) throws(CRUDError) -> Record? {
        try read([crudd_bytes(batch.arena.bytes(mutation.id))], in: mutation.collection, withItem, toWrite: toWrite)
        return found[0]
    }

    /// The records that mutations of one collection are about, read in one call.
    ///
    /// - Parameters:
    ///   - withItems: whether the items are wanted, too.
    ///   - toWrite: as of ``record(of:in:withItem:toWrite:)``.
    /// - Returns: for each its record, nil in it where there is none; nil where it was not read, as they are too long.
    func records(of mutations: [PluginMutation], withItems: Bool, toWrite: Bool) throws(CRUDError) -> [Record??] {
        guard let collection = mutations.first?.mutation.collection else { return [] }
        let ids = mutations.map { crudd_bytes($0.batch.arena.bytes($0.mutation.id)) }
        try read(ids, in: collection, withItems, toWrite: toWrite)
        let isComplete = bytes <= Self.maximumBytes
        return found.map { record in record != nil || isComplete ? .some(record) : nil }
    }

    private func read(
        _ ids: [crudd_bytes], in collection: BackendCollection, _ withItems: Bool, toWrite: Bool
    ) throws(CRUDError) {
        found = Array(repeating: nil, count: ids.count)
        bytes = 0
        try reader.read(ids.span, in: collection, withItems: withItems, toWrite: toWrite, into: self)
    }

    func receive(index: Int, _ record: FoundRecord) -> Bool {
        guard found.indices.contains(index) else { return true }
        found[index] = Record(item: Array(record.item), revision: Array(record.revision), expiresAt: record.expiresAt)
        bytes += record.item.count
        return bytes <= Self.maximumBytes
    }
}

extension Mutation {
    /// The outcome of the mutation where its precondition does not hold; nil if it does.
    ///
    /// - Parameter revision: the record's; nil where there is none.
    func refusal(current revision: [UInt8]?, in batch: MutationBatch) -> MutationOutcome? {
        switch (precondition, revision) {
        case (.any, _), (.absent, nil), (.present, .some): nil
        case (.absent, .some(let revision)) where kind == .check: .mismatch(current: revision)
        case (.absent, .some): .exists
        case (.present, nil), (.revision, nil): .notFound
        case (.revision(let expected), .some(let revision)):
            batch.arena.bytes(expected).elementsEqual(revision) ? nil : .mismatch(current: revision)
        }
    }
}
