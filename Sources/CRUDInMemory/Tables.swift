import CRUDClient
import CRUDJSON

/// The records of all collections, and what operations do to them.
struct Tables {
    /// By name, and in each by id; both as UTF-8, for String's own equality takes canonically equivalent texts for one.
    private var tables: [[UInt8]: [[UInt8]: Record]] = [:]
    /// The last revision that was given; none is given twice.
    private var revisions: UInt64 = 0

    /// The records of a collection, by id.
    subscript(collection: String) -> [[UInt8]: Record] {
        get { tables[Array(collection.utf8), default: [:]] }
        _modify { yield &tables[Array(collection.utf8), default: [:]] }
    }

    /// Carries out an operation.
    ///
    /// - Returns: the record as it is now; as it was, if it was deleted or only looked at.
    mutating func carryOut(_ operation: RecordOperation, in collection: String) throws(CRUDError) -> Record {
        let collection = operation.collection ?? collection
        let id = Array(operation.id.utf8)
        let current = self[collection][id]
        switch operation.action {
        case .create(let item):
            guard current == nil else { throw CRUDError(.recordExists, "there is a record with this id already") }
            return put(item, id, collection)
        case .update(let item, let expected):
            _ = try Self.present(current, expected)
            return put(item, id, collection)
        case .upsert(let item, let expected):
            if let expected { try Self.expect(expected, current) }
            return put(item, id, collection)
        case .patch(let patch, let expected, let upsert):
            if upsert {
                if let expected { try Self.expect(expected, current) }
            } else {
                _ = try Self.present(current, expected)
            }
            let item = try Self.patched(current?.item, with: patch)
            try Check.item(item)
            return put(item, id, collection)
        case .delete(let expected):
            let record = try Self.present(current, expected)
            self[collection][id] = nil
            return record
        case .check:
            // It leaves no record; see outcome(of:in:).
            throw CRUDError(.internalError, "a check leaves no record")
        }
    }

    /// Carries out an operation of a batch.
    mutating func outcome(of operation: RecordOperation, in collection: String) throws(CRUDError) -> RecordOutcome {
        switch operation.action {
        case .check(let expected):
            try Self.expect(expected, self[operation.collection ?? collection][Array(operation.id.utf8)])
            return RecordOutcome()
        case .delete:
            _ = try carryOut(operation, in: collection)
            return RecordOutcome()
        case .patch:
            let record = try carryOut(operation, in: collection)
            return RecordOutcome(revision: record.revision, item: record.item)
        case .create, .update, .upsert:
            return RecordOutcome(revision: try carryOut(operation, in: collection).revision)
        }
    }

    private mutating func put(_ item: EncodedItem, _ id: [UInt8], _ collection: String) -> Record {
        revisions += 1
        var normalization = ItemNormalization()
        let item = normalization.normalized(item.bytes.span).map(EncodedItem.init(bytes:)) ?? item
        let record = Record(id: id, item: item, revision: Revision(String(revisions)))
        self[collection][id] = record
        return record
    }

    private static func patched(_ item: EncodedItem?, with patch: EncodedItem) throws(CRUDError) -> EncodedItem {
        let item = item?.bytes ?? Array("{}".utf8)
        do throws(JSONSyntaxError) {
            return EncodedItem(bytes: try MergePatch.apply(patch.bytes.span, to: item.span))
        } catch {
            // Both have been checked when they were made.
            throw CRUDError(.internalError, "an item or a patch is not JSON")
        }
    }

    /// The record, which must be there and have the revision that is expected, if one is.
    private static func present(_ record: Record?, _ expected: Revision?) throws(CRUDError) -> Record {
        guard let record else { throw CRUDError(.recordNotFound, "there is no record with this id") }
        if let expected { try expect(expected, record) }
        return record
    }

    /// - Parameter revision: nil: there must be no record.
    private static func expect(_ revision: Revision?, _ record: Record?) throws(CRUDError) {
        guard record?.revision != revision else { return }
        throw CRUDError(
            .revisionMismatch, record == nil ? "there is no record with this id" : "the record has another revision",
            details: CRUDError.Details(revision: record?.revision.text))
    }
}
