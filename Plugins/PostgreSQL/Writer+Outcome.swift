import CRUDPluginKit
import Glibc

// A connection that is lost after COMMIT was sent leaves the outcome open. Then this connects again, raises the number
// of the lease, and rereads the revisions of the records that the batch was about. Raising the number waits for a
// transaction of the old connection that is still in progress and fails those that would come later, so what is read
// then is final. A record with the revision that the batch gave it proves that the transaction was committed; one that
// the batch would have changed, and has not, proves that it was not. Revisions are unique.
extension Writer {
    static let timeoutMilliseconds: Int64 = 3000
    private static let pauseMilliseconds: Int32 = 50

    /// What there is of a record.
    private struct Found {
        let revision: [UInt8]
        /// Whether it was new when it was stored.
        let isNew: Bool
        let expiresAt: Int64
    }

    /// Gives mutations their outcomes whose transaction may have been committed.
    ///
    /// - Throws: ``StorageFailure`` with `unavailable` or `noSpace` where it was not, with `outcomeUnknown` where that
    ///   is not known.
    func resolveOutcome(
        of batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>, after failure: StorageFailure
    ) throws(StorageFailure) {
        let unknown = StorageFailure(.outcomeUnknown, failure.message)
        // The server has said that it has committed, and that others may not know: nothing can prove more.
        if failure.status == .outcomeUnknown { throw failure }
        // The last mutation of each record is the one that is visible.
        var last: [RecordKey: Int] = [:]
        for position in range { last[RecordKey(batch[position])] = position }
        guard let found = reread(batch, last, until: batch.deadline) else {
            availability.doubtWrite()
            throw unknown
        }
        switch verdict(batch, last, found) {
        case true?: for position in range { judge(batch, position, last, found) }
        case false?: throw failure.status == .noSpace ? failure : StorageFailure(.unavailable, failure.message)
        case nil: throw unknown
        }
    }

    // MARK: Rereading

    private func reread(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ last: [RecordKey: Int], until deadline: Int64?
    ) -> [RecordKey: Found]? {
        let limit = min(deadline ?? .max, Clock.monotonic + Self.timeoutMilliseconds * 1_000_000)
        let wait = Wait(limit: limit)
        repeat {
            do throws(StorageFailure) {
                let connection = try reconnect()
                do throws(StorageFailure) {
                    // What still waits for a lock when this gives up is not to stay behind.
                    try connection.limitStatements(wait)
                    if !isShared, try !lease.advance(connection, wait) { return nil }
                    return try read(batch, last, connection, wait)
                } catch {
                    release(connection)
                    throw error
                }
            } catch {
                poll(nil, 0, Self.pauseMilliseconds)
            }
        } while Clock.monotonic < limit
        return nil
    }

    private func read(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ last: [RecordKey: Int], _ connection: Connection,
        _ wait: Wait
    ) throws(StorageFailure) -> [RecordKey: Found] {
        let records = Array(last)
        for (_, position) in records {
            let mutation = batch[position]
            var parameters = Parameters()
            parameters.add(mutation.id)
            try connection.send(.verify, mutation.collection.scope, parameters)
        }
        try connection.sync(wait)
        var found: [RecordKey: Found] = [:]
        for (key, _) in records {
            let result = try connection.receive(wait).check("reread a record")
            guard result.rowCount == 1 else { continue }
            found[key] = Found(
                revision: Array(result.bytes(0, 0)), isNew: result.integer(0, 1) == 1,
                expiresAt: result.integer(0, 2))
        }
        try connection.finish(wait)
        return found
    }

    // MARK: Judging

    /// Whether the transaction was committed; nil: that is not proved.
    private func verdict(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ last: [RecordKey: Int], _ found: [RecordKey: Found]
    ) -> Bool? {
        var isUndone = false
        for (key, position) in last {
            let mutation = batch[position]
            let record = found[key]
            if mutation.kind == .put, let record, record.revision.elementsEqual(mutation.revision) { return true }
            // It may have been there as one that has expired.
            if let record, batch.call.hasExpired(record.expiresAt) { continue }
            // With several daemons another one may have changed the record since.
            if !isShared, wouldHaveApplied(mutation, to: record) { isUndone = true }
        }
        return isUndone ? false : nil
    }

    /// Whether the transaction, had it been committed, would have changed what is there.
    private func wouldHaveApplied(_ mutation: Mutation<PostgreSQLCollection>, to record: Found?) -> Bool {
        guard mutation.kind == .put || mutation.kind == .remove else { return false }
        switch (mutation.precondition, record) {
        case (.none, nil), (.absent, nil): return mutation.kind == .put
        case (.none, .some), (.present, .some): return true
        case (.revision, .some(let record)): return record.revision.elementsEqual(mutation.expected)
        default: return false
        }
    }

    /// Gives a mutation of a transaction that was committed its outcome.
    private func judge(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ position: Int, _ last: [RecordKey: Int],
        _ found: [RecordKey: Found]
    ) {
        let mutation = batch[position]
        let key = RecordKey(mutation)
        let record = last[key] == position ? found[key] : nil
        if mutation.kind == .put, let record, record.revision.elementsEqual(mutation.revision) {
            batch.applied(
                position, replacing: mutation.precondition == .none ? !record.isNew : mutation.precondition != .absent)
        } else if batch.isAtomic, mutation.kind != .put || mutation.precondition != .none {
            batch.applied(position, replacing: mutation.kind == .put && mutation.precondition != .absent)
        } else if let record {
            let isPermitted = record.revision.withUnsafeBytes {
                batch.permits(mutation, at: position, current: ($0, record.expiresAt))
            }
            if isPermitted { batch.refused(position, .outcomeUnknown) }
        } else {
            batch.refused(position, .outcomeUnknown)
        }
    }
}
