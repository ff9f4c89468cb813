import CRUDClient
import CRUDJSON
import CRUDModel

/// The records of all collections, and how they are changed.
struct Tables {
    /// Distinguishes its cursors from those of other databases.
    let number = UInt64.random(in: 0...(.max))
    /// By name, in UTF-8: String's own equality takes canonically equivalent texts for one.
    private var tables: [[UInt8]: Table] = [:]
    /// The number of the last change, which is also the last revision that was given; none is given twice.
    private(set) var sequence: UInt64 = 0
    /// In milliseconds since 1970-01-01 UTC.
    private var now = 0

    /// The records of a collection.
    subscript(collection: String) -> Table {
        get { tables[Array(collection.utf8), default: Table()] }
        _modify { yield &tables[Array(collection.utf8), default: Table()] }
    }

    /// A record, if it is there.
    subscript(id: String, collection: String) -> Record? { self[collection][Array(id.utf8)] }

    /// Sets the time of the operations that follow, and deletes the records that have expired.
    mutating func advance(to now: Int) {
        self.now = max(now, self.now)
        for index in tables.values.indices { tables.values[index].expire(at: self.now, sequence: &sequence) }
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
        _ item: EncodedItem, _ id: String, _ collection: String, if precondition: Precondition, _ expiry: Expiry?
    ) throws(CRUDError) -> Record {
        try expect(precondition, id, collection)
        return put(item, id, collection, expiresAt: instant(expiry))
    }

    private mutating func put(_ item: EncodedItem, _ id: String, _ collection: String, expiresAt: Int?) -> Record {
        sequence += 1
        let record = Record(
            id: Array(id.utf8), item: EncodedItem(bytes: normalized(item.bytes)), revision: Revision(String(sequence)),
            expiresAt: expiresAt,
            sequence: sequence)
        self[collection].put(record)
        // Its instant may have passed.
        var last = sequence
        self[collection].expire(at: now, sequence: &last)
        sequence = last
        return record
    }

    private func normalized(_ item: [UInt8]) -> [UInt8] {
        var work = Work()
        return normalized(item, &work)
    }

    private func normalized(_ item: [UInt8], _ work: inout Work) -> [UInt8] {
        var normalization = ItemNormalization()
        return normalization.normalized(item.span, &work) ?? item
    }

    /// When a record expires that is written now; nil: never.
    private func instant(_ expiry: Expiry?) -> Int? {
        switch expiry {
        case .after(let duration): duration.wholeMilliseconds.map { now + $0 }
        case .at(let instant): Expiry.milliseconds(instant)
        case .never, nil: nil
        }
    }

    /// Applies a merge patch and field operations to a record's item.
    ///
    /// - Throws: ``CRUDError/stopped`` if the task's calls are over meanwhile; nothing has changed then.
    mutating func patch(
        _ patch: EncodedItem?, _ operations: FieldOperationTexts, _ id: String, _ collection: String,
        if precondition: Precondition, _ expiry: Expiry?
    ) throws(CRUDError) -> Record {
        let current = self[id, collection]
        try expect(precondition, id, collection)
        let item = current?.item.bytes ?? Array("{}".utf8)
        let deadline = CRUDClient.deadline
        var work = Work { RequestCheck.isOver(deadline: deadline) }
        let merged: [UInt8]
        do throws(JSONSyntaxError) {
            merged =
                if let patch {
                    normalized(try MergePatch.apply(patch.bytes.span, to: item.span, &work), &work)
                } else {
                    item
                }
        } catch {
            if work.isStopped { throw .stopped }
            // Both were checked when they came.
            throw CRUDError(.internalError, "an item or a patch is not JSON")
        }
        var fields = try RequestCheck.fieldPatch(operations)
        let patched = EncodedItem(
            bytes: operations.isEmpty ? merged : try fields.apply(to: merged.span, operations.text.span, &work))
        if work.isStopped { throw .stopped }
        try RequestCheck.item(patched)
        return put(patched, id, collection, expiresAt: expiry == nil ? current?.expiresAt : instant(expiry))
    }

    /// Determines when a record expires.
    private mutating func touch(
        _ id: String, _ collection: String, if precondition: Precondition, _ expiry: Expiry
    ) throws(CRUDError) -> Record {
        try expect(precondition, id, collection)
        guard let item = self[id, collection]?.item else {
            throw CRUDError.recordNotFound(id.utf8, in: collection.utf8)
        }
        return put(item, id, collection, expiresAt: instant(expiry))
    }

    mutating func delete(_ id: String, _ collection: String, ifRevision: Revision?) throws(CRUDError) {
        try expect(.present(ifRevision), id, collection)
        remove(Array(id.utf8), collection)
    }

    /// Deletes a record that is there.
    mutating func remove(_ id: [UInt8], _ collection: String) {
        sequence += 1
        self[collection].remove(id, sequence: sequence)
    }

    /// Executes an operation of a batch.
    mutating func execute(_ operation: RecordOperation, in collection: String) throws(CRUDError) -> RecordOutcome {
        let id = operation.id
        let collection = operation.collection ?? collection
        let expiry = operation.expiry
        switch operation.action {
        case .create(let item):
            return RecordOutcome(revision: try put(item, id, collection, if: .absent, expiry).revision)
        case .update(let item, let revision):
            return RecordOutcome(revision: try put(item, id, collection, if: .present(revision), expiry).revision)
        case .upsert(let item, let revision):
            return RecordOutcome(revision: try put(item, id, collection, if: .unchanged(revision), expiry).revision)
        case .patch(let patch, let revision, let upsert):
            let record = try self.patch(
                patch, FieldOperationTexts(), id, collection, if: upsert ? .unchanged(revision) : .present(revision),
                expiry)
            return RecordOutcome(revision: record.revision, item: record.item)
        case .apply(let operations, let patch, let revision, let upsert):
            let record = try self.patch(
                patch, try operations.texts(), id, collection, if: upsert ? .unchanged(revision) : .present(revision),
                expiry)
            return RecordOutcome(revision: record.revision, item: record.item)
        case .touch(let revision):
            return RecordOutcome(
                revision: try touch(id, collection, if: .present(revision), expiry ?? .never).revision)
        case .delete(let revision):
            try delete(id, collection, ifRevision: revision)
        case .check(let revision?):
            try expect(.present(revision), id, collection)
        case .check(nil):
            guard self[id, collection] == nil else { throw mismatch(id, collection) }
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
