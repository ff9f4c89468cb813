import CRUDJSON
import CRUDModel

/// Changes that depend on the present record.
extension Repository {
    /// Changes a record that others may change concurrently.
    ///
    /// ```swift
    /// try await users.modify(id: "ada") { $0.visits += 1 }
    /// ```
    ///
    /// It reads the record, calls `change`, and sends the difference as a merge patch with the revision that was read
    /// as its condition. Members that the model does not have are kept, and so are those whose ``Field`` is absent; a
    /// member that becomes nil is removed. After a conflict it retries, after a random pause. Nothing is written if
    /// `change` changes nothing. ``apply(id:ifRevision:upsert:expiry:_:)`` counts and adds to lists without all that.
    ///
    /// If the reply to the patch is lost, it is sent again with the same revision as its condition: if that succeeds,
    /// the change has taken effect once. ``CRUDError/Code/outcomeUnknown`` remains where the revision is another one
    /// by then, since the change or another one has been applied.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - change: is called once for each attempt, in the caller's isolation. It should have no other effects, and
    ///     must leave the model's own id alone.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/timedOut`` if there were conflicts until the time
    ///   of a call was over (``RecordStore/timeout``, or an earlier deadline of ``CRUDClient/withDeadline(in:_:)``):
    ///   nothing was changed; ``CRUDError/Code/invalidParams`` if `change` makes the model one with another id; the
    ///   errors of `change`; a `DecodingError` if the item is not a `Model`.
    @discardableResult
    public nonisolated(nonsending) func modify(
        id: some RecordIDConvertible, _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        try await modify(recordID(id), expiry: nil, within: store.timeout, change)
    }

    /// Changes a record as ``modify(id:_:)`` does, for a time of its own.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - duration: how long it may retry, after conflicts and after lost replies.
    ///   - change: is called once for each attempt, in the caller's isolation.
    /// - Returns: the new record.
    /// - Throws: as ``modify(id:_:)``.
    @discardableResult
    public nonisolated(nonsending) func modify(
        id: some RecordIDConvertible, within duration: Duration, _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        try await modify(recordID(id), expiry: nil, within: duration, change)
    }

    /// Changes a record as ``modify(id:_:)`` does, which keeps its expiry, and determines when it expires, also if
    /// `change` changes nothing.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire any more.
    ///   - duration: how long it may retry, after conflicts and after lost replies; nil: the time of a call.
    ///   - change: is called once for each attempt, in the caller's isolation.
    /// - Returns: the new record.
    /// - Throws: as ``modify(id:_:)``; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    public nonisolated(nonsending) func modify(
        id: some RecordIDConvertible, expiresIn: Duration?, within duration: Duration? = nil,
        _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        try await modify(
            recordID(id), expiry: Expiry(expiresIn: expiresIn), within: duration ?? store.timeout, change)
    }

    private nonisolated(nonsending) func modify(
        _ id: String, expiry: Expiry?, within duration: Duration, _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        try await CRUDClient.withDeadline(in: duration) {
            var pauses = ConflictPauses()
            while true {
                let record = try await store.readVersioned(id: id, as: Model.self)
                var model = record.item
                try change(&model)
                try ModelID.expectSame(record.item, model)
                let patch = try Self.patch(from: record.item, to: model)
                if patch == nil, expiry == nil { return record.item }
                do {
                    return try await ConditionalWrite.send {
                        try await store(patch, for: record, expiry)
                    }
                } catch let error as CRUDError where error.code == .revisionMismatch {
                    try await pauses.wait("the record")
                }
            }
        }
    }

    /// Stores what has changed of a record, if it still has its revision.
    private nonisolated(nonsending) func store(
        _ patch: EncodedItem?, for record: Versioned<Model>, _ expiry: Expiry?
    ) async throws -> Model {
        if let expiry {
            guard let patch else {
                try await store.touch(id: record.id, expiry: expiry, ifRevision: record.revision)
                return record.item
            }
            return try await store.patch(
                id: record.id, with: patch, ifRevision: record.revision, upsert: false, expiry: expiry, as: Model.self
            ).item
        }
        guard let patch else { return record.item }
        return try await store.patch(
            id: record.id, with: patch, ifRevision: record.revision, upsert: false, as: Model.self
        ).item
    }

    /// What is to be stored to change one model into the other; nil: nothing.
    private static func patch(from before: Model, to after: Model) throws -> EncodedItem? {
        let old = try EncodedItem(ModelCoding.storedValue(of: before))
        let absent = AbsentFields()
        let new = try AbsentFields.$current.withValue(absent) { try EncodedItem(ModelCoding.storedValue(of: after)) }
        return try MergePatch.difference(from: old.bytes, to: new.bytes, keeping: absent.paths)
            .map { EncodedItem(bytes: $0) }
    }
}
