import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDQuery

/// Reads single records for mutations that depend on them, on the writing thread.
final class CurrentRecordReader: ReadSink {
    /// A record as it stands.
    struct Record {
        var item: [UInt8]
        var revision: [UInt8]
        var expiresAt: Int64
    }

    private let reader: SnapshotReader
    private var found: Record?

    init(_ reader: SnapshotReader) {
        self.reader = reader
    }

    /// The record that a mutation is about; nil if there is none.
    ///
    /// - Parameter withItem: whether the item is wanted, too.
    func record(of mutation: Mutation, in batch: MutationBatch, withItem: Bool) throws(CRUDError) -> Record? {
        found = nil
        let id = [crudd_bytes(batch.arena.bytes(mutation.id))]
        try reader.read(id.span, in: mutation.collection, withItems: withItem, into: self)
        return found
    }

    func receive(index: Int, _ record: FoundRecord) -> Bool {
        found = Record(item: Array(record.item), revision: Array(record.revision), expiresAt: record.expiresAt)
        return true
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
