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
    /// - Parameters:
    ///   - id: the record's id.
    ///   - change: is called once for each attempt, in the caller's isolation. It should have no other effects.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/unavailable``, with a ``DeadlineExceeded`` as its
    ///   ``CRUDError/cause``, if there were conflicts until the time of a call was over (``RecordStore/timeout``, or an
    ///   earlier deadline of ``CRUDClient/withDeadline(in:_:)``): nothing was changed; the errors of `change`; a
    ///   `DecodingError` if the item is not a `Model`.
    @discardableResult
    public nonisolated(nonsending) func modify(
        id: some RecordIDConvertible, _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        let id = id.recordID
        return try await CRUDClient.withDeadline(in: store.timeout) {
            var attempts = 0
            while true {
                let record = try await store.readVersioned(id: id, as: Model.self)
                var model = record.item
                try change(&model)
                guard let patch = try Self.patch(from: record.item, to: model) else { return record.item }
                do {
                    return try await store.patch(
                        id: id, with: patch, ifRevision: record.revision, upsert: false, as: Model.self
                    ).item
                } catch let error as CRUDError where error.code == .revisionMismatch {
                    attempts += 1
                    try await pause(after: attempts)
                }
            }
        }
    }

    /// What is to be stored to change one model into the other; nil: nothing.
    private static func patch(from before: Model, to after: Model) throws -> EncodedItem? {
        let old = try EncodedItem(ModelCoding.storedValue(of: before))
        let absent = AbsentFields()
        let new = try AbsentFields.$current.withValue(absent) { try EncodedItem(ModelCoding.storedValue(of: after)) }
        return try MergePatch.difference(from: old.bytes, to: new.bytes, keeping: absent.paths)
            .map { EncodedItem(bytes: $0) }
    }

    /// Waits for a random time that grows with the number of failed attempts, but not past the deadline.
    private nonisolated(nonsending) func pause(after attempts: Int) async throws {
        let longest = Duration.milliseconds(4 << min(attempts, 7))
        let end = ContinuousClock.now + longest * Double.random(in: 0...1)
        if let deadline = CRUDClient.deadline, deadline < end {
            throw CRUDError(
                .unavailable, "others changed the record until the deadline, \(attempts) times",
                cause: DeadlineExceeded())
        }
        try await Task.sleep(until: end, clock: .continuous)
    }
}
