import CRUDPluginKit
import Synchronization

/// The connection that writes: each batch is one transaction in one round trip.
final class Writer {
    private let settings: ConnectionSettings
    let availability: Availability
    let lease: Lease
    let isShared: Bool
    /// What the lease's number was when the backend was opened.
    let firstFence: Int64
    private let control: StatementScope
    private var connection: Connection?
    /// No sequence number above this has been stored. It is raised by a block before the first number of the block is
    /// used.
    private(set) var sequenceCeiling: UInt64

    /// How often a transaction that conflicts with others is tried.
    static let maximumAttempts = 5
    /// How often a change of the schema is tried that collides with those of other daemons.
    private static let maximumSchemaAttempts = 20

    init(
        _ settings: ConnectionSettings, _ availability: Availability, _ lease: Lease, _ connection: Connection,
        isShared: Bool, sequenceCeiling: UInt64
    ) {
        self.settings = settings
        self.availability = availability
        self.lease = lease
        self.connection = connection
        self.isShared = isShared
        self.sequenceCeiling = sequenceCeiling
        firstFence = lease.fence
        control = lease.scope
    }

    func close() {
        connection = nil
    }

    // MARK: The connection

    /// Calls `body` with the connection, which is replaced if it was lost, and in order again afterwards.
    func use<Result>(
        _ body: (Connection) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        try availability.check()
        let connection = try connected()
        do throws(StorageFailure) {
            return try body(connection)
        } catch {
            release(connection)
            throw error
        }
    }

    private func connected() throws(StorageFailure) -> Connection {
        let connection: Connection
        if let existing = self.connection, !existing.isBroken, !existing.hasEnded() {
            connection = existing
        } else {
            connection = try reconnect()
        }
        if lease.isInDoubt { try makeSure(of: connection) }
        return connection
    }

    /// Finds out whether this daemon still holds the lease, and by which number.
    private func makeSure(of connection: Connection) throws(StorageFailure) {
        let wait = Wait(milliseconds: Self.timeoutMilliseconds)
        do throws(StorageFailure) {
            try connection.limitStatements(wait)
            guard try lease.advance(connection, wait) else { throw takenOver() }
        } catch {
            release(connection)
            throw error
        }
    }

    /// Connects again.
    func reconnect() throws(StorageFailure) -> Connection {
        connection = nil
        do throws(StorageFailure) {
            let connection = try Connection(settings)
            self.connection = connection
            return connection
        } catch {
            availability.suspect()
            throw error
        }
    }

    /// Has a connection whose use has failed in order again, or replaced.
    func release(_ connection: Connection) {
        connection.recover()
        guard connection.isBroken else { return }
        self.connection = nil
        availability.suspect()
    }

    /// Runs `body`, which changes the schema, in a transaction, which is undone if it throws.
    ///
    /// - Parameter lossStatus: what it is where the connection is lost at the commit, which may have taken effect;
    ///   `unavailable` suits what is simply done again.
    func transaction(
        _ connection: Connection, _ wait: Wait, lossStatus: StorageFailure.Status = .unavailable,
        _ body: () throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        try connection.limitStatements(wait)
        do throws(StorageFailure) {
            try begin(connection)
            try connection.sync(wait)
            for _ in 0..<(isShared ? 1 : 2) { try check(fence: connection.receive(wait)) }
            try connection.finish(wait)
            try body()
            let commit: QueryResult
            do throws(StorageFailure) {
                commit = try connection.query("COMMIT", Parameters(), [], wait)
            } catch {
                throw StorageFailure(lossStatus, error.message)
            }
            try commit.check("commit")
        } catch {
            release(connection)
            throw error
        }
    }

    /// Calls `body`, which changes the schema, again where it has collided with another daemon that does.
    ///
    /// - Parameter body: it is told how often that was.
    func retrying<Result>(
        _ connection: Connection, _ body: (_ attempt: Int) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        var attempt = 0
        while true {
            connection.hasCollided = false
            do throws(StorageFailure) {
                return try body(attempt)
            } catch {
                attempt += 1
                guard connection.hasCollided, !connection.isBroken, attempt < Self.maximumSchemaAttempts else {
                    throw error
                }
            }
        }
    }

    /// Sends what every transaction begins with.
    func begin(_ connection: Connection) throws(StorageFailure) {
        try connection.send(.begin, control, Parameters())
        if isShared { return }
        var parameters = Parameters()
        parameters.add(lease.fence)
        try connection.send(.fence, control, parameters)
    }

    private func check(fence result: QueryResult) throws(StorageFailure) {
        guard let error = result.error else { return }
        guard error.state == Lease.lossState else { throw error.failure("begin a transaction") }
        throw takenOver()
    }

    private func takenOver() -> StorageFailure {
        let reason = "another daemon has taken the schema over"
        availability.takenOver(reason)
        return StorageFailure(.unavailable, reason)
    }

    // MARK: Batches

    func write(_ batch: borrowing WriteBatch<PostgreSQLCollection>) throws(StorageFailure) {
        var highest: UInt64 = 0
        for position in 0..<batch.count {
            let mutation = batch[position]
            highest = max(highest, mutation.sequence)
            if mutation.expiresAt != 0 { mutation.collection.mayExpire.store(true, ordering: .relaxed) }
        }
        if highest > sequenceCeiling { try reserve(SequenceBlock.last(of: highest), batch.call) }
        if let error = try write(batch, 0..<batch.count) { throw error.failure("write") }
    }

    /// Notes durably that sequence numbers up to `ceiling` may be used.
    func reserve(_ ceiling: UInt64, _ call: CallContext) throws(StorageFailure) {
        let wait = Wait(call, availability, isInterruptible: false)
        let isHeld = try use { (connection) throws(StorageFailure) in
            try lease.reserve(ceiling, isShared: isShared, connection, wait)
        }
        guard isHeld else { throw takenOver() }
        sequenceCeiling = ceiling
    }

    /// Applies a part of a batch, each record that the server refuses by itself.
    ///
    /// - Returns: why nothing of it was applied.
    private func write(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>
    ) throws(StorageFailure) -> ServerError? {
        var attempts = 0
        while true {
            guard let error = try attempt(batch, range) else { return nil }
            attempts += 1
            if error.isConflict, attempts < Self.maximumAttempts { continue }
            guard error.concernsRecord, !batch.isAtomic else { return error }
            if range.count == 1 {
                batch.refused(range.lowerBound, .unsupported)
                return nil
            }
            let middle = range.lowerBound + range.count / 2
            // What one half has done stays, so that the failure of another is that of its mutations.
            for half in [range.lowerBound..<middle, middle..<range.upperBound] {
                var status: StorageFailure.Status?
                do throws(StorageFailure) { status = try write(batch, half)?.status } catch { status = error.status }
                if let status { for position in half { batch.refused(position, status) } }
            }
            return nil
        }
    }

    /// Applies a part of a batch in one transaction.
    ///
    /// - Returns: why the server has undone it.
    private func attempt(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>
    ) throws(StorageFailure) -> ServerError? {
        try availability.check()
        let connection = try connected()
        let wait = Wait(batch.call, availability, isInterruptible: false)
        let plan = WritePlan(batch, range)
        var progress = Progress.undecided
        do throws(StorageFailure) {
            let error = try execute(plan, batch, connection, wait, &progress)
            if error != nil { release(connection) }
            return error
        } catch {
            release(connection)
            guard progress == .committing else { throw error }
            try resolveOutcome(of: batch, range, after: error)
            return nil
        }
    }

    /// How far a transaction has come.
    enum Progress {
        /// The server has not been asked to commit.
        case undecided
        /// It may have.
        case committing
    }

    private func execute(
        _ plan: WritePlan, _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ connection: Connection,
        _ wait: Wait, _ progress: inout Progress
    ) throws(StorageFailure) -> ServerError? {
        try connection.limitStatements(wait)
        try begin(connection)
        for step in plan.steps { try connection.send(step.statement, step.scope, step.parameters(batch)) }
        connection.hasWarned = false
        if batch.isAtomic { try connection.sync(wait) } else { try commit(connection, wait, &progress) }
        var failure = try receiveBeginning(connection, wait, &progress)
        var isApplied = true
        for step in plan.steps {
            let result = try connection.receive(wait)
            failure = failure ?? result.error
            if result.error == nil, !step.judge(result, batch) { isApplied = false }
        }
        if !batch.isAtomic {
            let commit = try connection.receive(wait)
            try connection.finish(wait)
            if failure != nil { progress = .undecided }
            if let failure { return failure }
            return try check(commit: commit, connection, &progress)
        }
        try connection.finish(wait)
        if let failure { return failure }
        guard isApplied else {
            connection.recover()
            return nil
        }
        try commit(connection, wait, &progress)
        let commit = try connection.receive(wait)
        try connection.finish(wait)
        return try check(commit: commit, connection, &progress)
    }

    /// Sends the end of a transaction, with all that was queued.
    func commit(_ connection: Connection, _ wait: Wait, _ progress: inout Progress) throws(StorageFailure) {
        try connection.send(.commit, control, Parameters())
        progress = .committing
        try connection.sync(wait)
    }

    /// Receives the results of what every transaction begins with.
    ///
    /// - Returns: why it has failed.
    func receiveBeginning(
        _ connection: Connection, _ wait: Wait, _ progress: inout Progress
    ) throws(StorageFailure) -> ServerError? {
        let failure = try connection.receive(wait).error
        if isShared { return failure }
        let fence = try connection.receive(wait)
        if let error = fence.error, error.state == Lease.lossState {
            progress = .undecided
            throw takenOver()
        }
        return failure ?? fence.error
    }

    /// Whether a commit has succeeded; an error after which nobody knows is thrown.
    func check(
        commit: QueryResult, _ connection: Connection, _ progress: inout Progress
    ) throws(StorageFailure) -> ServerError? {
        guard let error = commit.error else {
            if connection.hasWarned {
                throw StorageFailure(.outcomeUnknown, "the server has committed without waiting for its standbys")
            }
            if commit.command == "COMMIT" { return nil }
            progress = .undecided
            throw StorageFailure(.unavailable, "the server has undone a transaction")
        }
        guard error.isConflict || error.concernsRecord else { throw error.failure("commit") }
        progress = .undecided
        return error
    }
}
