import CRUDPluginKit
import Glibc

// A connection that is lost after COMMIT was sent leaves the outcome open, and so does a server that has committed
// without its standbys. Then there is doubt, which the keeper of the lease answers by raising its number in a commit
// that the server confirms: what is visible by then is replicated, and final. Only then are the revisions of the
// records reread that the batch was about. A record with the revision that the batch gave it proves that the
// transaction was committed; one that the batch would have changed, and has not, proves that it was not. Revisions are
// unique.
extension Writer {
    private static let timeoutMilliseconds: Int64 = 3000
    private static let pauseMilliseconds: Int32 = 20

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
        availability.doubt()
        // Readers ask again.
        commits.end()
        // The last mutation of each record is the one that is visible.
        var last: [RecordKey: Int] = [:]
        for position in range { last[RecordKey(batch[position])] = position }
        guard let found = reread(batch, last, until: batch.deadline) else { throw unknown }
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
        while let server = availability.answer(until: limit) {
            do throws(StorageFailure) {
                return try read(batch, last, from: server, Wait(limit: limit))
            } catch {
                // The connection was lost, as a rule: there is doubt again.
                if Clock.monotonic >= limit { return nil }
                poll(nil, 0, Self.pauseMilliseconds)
            }
        }
        // Nothing is read or written before the keeper has found a server that confirms commits.
        availability.report("a commit is not confirmed")
        return nil
    }

    private func read(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ last: [RecordKey: Int], from server: ChosenServer,
        _ wait: Wait
    ) throws(StorageFailure) -> [RecordKey: Found] {
        let connection = try connected(to: server)
        do throws(StorageFailure) {
            try connection.limitStatements(wait)
            return try read(batch, last, connection, wait)
        } catch {
            release(connection)
            throw error
        }
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
            // With several daemons another one may have changed the record since. Where it is on another server, what
            // has been committed may show only when that server has recovered.
            if !isShared, settings.plansOnce, wouldHaveApplied(mutation, to: record) { isUndone = true }
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
