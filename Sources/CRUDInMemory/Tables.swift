import CRUDClient
import CRUDJSON

/// The records of all collections, and how they are changed.
struct Tables {
    /// By name, in UTF-8: String's own equality takes canonically equivalent texts for one.
    private var tables: [[UInt8]: Table] = [:]
    /// The last revision that was given; none is given twice.
    private var revisions: UInt64 = 0

    /// The records of a collection.
    subscript(collection: String) -> Table {
        get { tables[Array(collection.utf8), default: Table()] }
        _modify { yield &tables[Array(collection.utf8), default: Table()] }
    }

    /// A record, if it is there.
    subscript(id: String, collection: String) -> Record? {
        get { self[collection][Array(id.utf8)] }
        set { self[collection][Array(id.utf8)] = newValue }
    }

    /// What must be so before a record is written.
    enum Precondition {
        case absent
        /// It is there and has this revision; nil: any.
        case present(Revision?)
        /// It has this revision; nil: any, and it need not be there.
        case unchanged(Revision?)
    }

    // MARK: Writing

    /// Stores a record's item.
    mutating func put(
        _ item: EncodedItem, _ id: String, _ collection: String, if precondition: Precondition
    ) throws(CRUDError) -> Record {
        try expect(precondition, id, collection)
        revisions += 1
        var normalization = ItemNormalization()
        let item = normalization.normalized(item.bytes.span).map(EncodedItem.init(bytes:)) ?? item
        let record = Record(id: Array(id.utf8), item: item, revision: Revision(String(revisions)))
        self[id, collection] = record
        return record
    }

    /// Applies a merge patch to a record's item.
    mutating func patch(
        _ patch: EncodedItem, _ id: String, _ collection: String, if precondition: Precondition
    ) throws(CRUDError) -> Record {
        let current = self[id, collection]
        try expect(precondition, id, collection)
        let item = current?.item.bytes ?? Array("{}".utf8)
        let patched: EncodedItem
        do throws(JSONSyntaxError) {
            patched = EncodedItem(bytes: try MergePatch.apply(patch.bytes.span, to: item.span))
        } catch {
            // Both were checked when they came.
            throw CRUDError(.internalError, "an item or a patch is not JSON")
        }
        try Check.item(patched)
        return try put(patched, id, collection, if: .unchanged(nil))
    }

    mutating func delete(_ id: String, _ collection: String, ifRevision: Revision?) throws(CRUDError) {
        try expect(.present(ifRevision), id, collection)
        self[id, collection] = nil
    }

    /// Executes an operation of a batch.
    mutating func execute(_ operation: RecordOperation, in collection: String) throws(CRUDError) -> RecordOutcome {
        let id = operation.id
        let collection = operation.collection ?? collection
        switch operation.action {
        case .create(let item):
            return RecordOutcome(revision: try put(item, id, collection, if: .absent).revision)
        case .update(let item, let revision):
            return RecordOutcome(revision: try put(item, id, collection, if: .present(revision)).revision)
        case .upsert(let item, let revision):
            return RecordOutcome(revision: try put(item, id, collection, if: .unchanged(revision)).revision)
        case .patch(let patch, let revision, let upsert):
            let record = try self.patch(patch, id, collection, if: upsert ? .unchanged(revision) : .present(revision))
            return RecordOutcome(revision: record.revision, item: record.item)
        case .delete(let revision):
            try delete(id, collection, ifRevision: revision)
        case .check(let revision):
            guard self[id, collection]?.revision == revision else { throw mismatch(id, collection) }
        }
        return RecordOutcome()
    }

    // MARK: Preconditions

    private func expect(_ precondition: Precondition, _ id: String, _ collection: String) throws(CRUDError) {
        let record = self[id, collection]
        switch precondition {
        case .absent:
            guard record == nil else { throw CRUDError.recordExists(id.utf8, in: collection.utf8) }
        case .present(let revision):
            guard let record else { throw CRUDError.recordNotFound(id.utf8, in: collection.utf8) }
            guard revision == nil || record.revision == revision else { throw mismatch(id, collection) }
        case .unchanged(let revision):
            guard revision == nil || record?.revision == revision else { throw mismatch(id, collection) }
        }
    }

    private func mismatch(_ id: String, _ collection: String) -> CRUDError {
        .revisionMismatch(id.utf8, in: collection.utf8, current: self[id, collection]?.revision.text)
    }
}
