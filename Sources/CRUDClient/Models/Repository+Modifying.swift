import CRUDJSON
import CRUDModel

/// Changing a record by what it is.
extension Repository {
    /// How long ``modify(id:_:)`` goes on trying.
    private static var patience: Duration { .seconds(30) }

    /// Changes a record that others may be changing too.
    ///
    /// ```swift
    /// try await users.modify(id: "ada") { $0.visits += 1 }
    /// ```
    ///
    /// It reads the record, lets `change` change it, and sends the difference as a merge patch that holds only for the
    /// revision that was read; members that the model does not know stay as they are. If somebody else was quicker, it
    /// does so again after a random pause. Nothing is written where `change` changes nothing.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - change: is run once for each attempt, so that it should change nothing but what it is handed. It is run where
    ///     the caller is.
    /// - Returns: the record as it is now.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/unavailable``, with a ``DeadlineExceeded`` as its
    ///   ``CRUDError/cause``, where others were quicker for 30 seconds, or until an earlier deadline of
    ///   ``CRUDClient/withDeadline(in:_:)``: nothing was changed then; what `change` throws; a `DecodingError` where the
    ///   item is no `Model`.
    @discardableResult
    public nonisolated(nonsending) func modify(
        id: some RecordIDConvertible, _ change: (inout Model) throws -> Void
    ) async throws -> Model {
        let id = id.recordID
        return try await CRUDClient.withDeadline(in: Self.patience) {
            var attempts = 0
            while true {
                let record = try await store.readVersioned(id: id, as: Model.self)
                var model = record.item
                try change(&model)
                guard
                    let patch = try MergePatch.difference(
                        from: try EncodedItem(ModelCoding.storedValue(of: record.item)).bytes,
                        to: try EncodedItem(ModelCoding.storedValue(of: model)).bytes)
                else { return model }
                do {
                    let patch = EncodedItem(bytes: patch)
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

    /// Waits a random time, the longer the more attempts have failed, but not past the deadline.
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
