import CRUDPluginKit
import Synchronization

/// The connection that writes: each batch is one transaction in one round trip.
final class Writer {
    let settings: ConnectionSettings
    let availability: Availability
    let lease: Lease
    let commits: CommitInProgress
    let isShared: Bool
    let control: StatementScope
    private var connection: Connection?
    /// When a lock of another session was waited for in vain, by ``Clock/monotonic``.
    private var lastBlocked = Int64.min / 2
    /// Records that are locked, in a transaction that the next batch ends.
    var hold: Hold?
    /// Finds out what other daemons have declared meanwhile; called where the lease has got another number.
    var lookAgain: ((Connection) throws(StorageFailure) -> Void)?
    /// The number of the lease before it was found out last what others have declared, which transactions expect.
    private var fence: Int64 = -1
    /// Called when changes of a collection have been committed.
    var committed: (PostgreSQLCollection) -> Void = { _ in }

    /// How often a change of the schema is tried that collides with those of other daemons.
    private static let maximumSchemaAttempts = 20

    init(
        _ settings: ConnectionSettings, _ availability: Availability, _ lease: Lease, _ commits: CommitInProgress,
        _ connection: Connection, isShared: Bool
    ) {
        self.settings = settings
        self.availability = availability
        self.lease = lease
        self.commits = commits
        self.connection = connection
        self.isShared = isShared
        control = lease.scope
    }

    func close() {
        (hold, connection) = (nil, nil)
    }

    // MARK: The connection

    /// Calls `body` with the connection, which is replaced if it was lost, and in order again afterwards.
    func use<Result>(
        _ body: (Connection) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        let connection = try connected()
        do throws(StorageFailure) {
            return try body(connection)
        } catch {
            release(connection)
            throw error
        }
    }

    func connected() throws(StorageFailure) -> Connection {
        endHold()
        var server = try availability.server()
        if let connection, connection.generation == server.generation, !connection.belongs(to: server) {
            // It was lost unnoticed.
            availability.doubt()
            server = try availability.server()
        }
        let connection = try connected(to: server)
        do throws(StorageFailure) { try followOthers(connection) } catch {
            release(connection)
            throw error
        }
        return connection
    }

    /// Finds out what others have declared, where the lease has another number than the last time.
    private func followOthers(_ connection: Connection) throws(StorageFailure) {
        let fence = lease.fence
        if fence != self.fence, let lookAgain { try lookAgain(connection) }
        self.fence = fence
    }

    /// A connection to a server about which nothing is in doubt.
    func connected(to server: ChosenServer) throws(StorageFailure) -> Connection {
        if let connection, connection.belongs(to: server) { return connection }
        connection = nil
        let connection = try Connection(settings, to: server, availability)
        self.connection = connection
        return connection
    }

    /// Has a connection whose use has failed in order again, or given up.
    func release(_ connection: Connection) {
        connection.recover()
        guard connection.isBroken else { return }
        self.connection = nil
        availability.doubt()
    }

    /// Runs `body`, which changes the schema, in a transaction, which is undone if it throws.
    ///
    /// - Parameters:
    ///   - lossStatus: what it is where the connection is lost at the commit, which may have taken effect;
    ///     `unavailable` suits what is simply done again.
    ///   - isFenced: whether it fails where the lease has been lost, and holds up its renewal.
    func transaction(
        _ connection: Connection, _ wait: Wait, lossStatus: StorageFailure.Status = .unavailable, isFenced: Bool = true,
        _ body: () throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        let wait = wait.on(connection)
        try connection.limitStatements(wait)
        try connection.limitLocks(milliseconds: isFenced ? BlockLimits.first.lockMilliseconds : 0)
        do throws(StorageFailure) {
            if isFenced {
                let fence = try begin(connection)
                try connection.sync(wait)
                for _ in 0..<2 { try check(connection.receive(wait), of: fence, connection) }
                try connection.finish(wait)
            } else {
                try connection.query("BEGIN", Parameters(), [], wait).check("begin a transaction")
            }
            try body()
            var progress = Progress.undecided
            do throws(StorageFailure) {
                connection.warning = nil
                try commit(connection, wait, &progress)
                let result = try connection.receive(wait)
                try connection.finish(wait)
                if let error = try check(commit: result, connection, &progress) { throw error.failure("commit") }
            } catch {
                guard progress == .committing else { throw error }
                // What is found next has to be replicated.
                availability.doubt()
                throw StorageFailure(lossStatus, error.message)
            }
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
                // The lease may have another number.
                _ = try availability.server()
                try followOthers(connection)
            }
        }
    }

    /// Sends what every transaction begins with.
    ///
    /// - Returns: the number that the lease is expected to have.
    func begin(_ connection: Connection) throws(StorageFailure) -> Int64 {
        try connection.send(.begin, control, Parameters())
        let fence = lookAgain == nil ? lease.fence : fence
        try connection.send(.fence, control, lease.parameters(of: fence))
        return fence
    }

    private func check(_ result: QueryResult, of fence: Int64, _ connection: Connection) throws(StorageFailure) {
        guard let error = result.error else { return }
        guard error.state == Lease.lossState else { throw error.failure("begin a transaction") }
        connection.hasCollided = true
        noteChange(of: fence)
        throw StorageFailure(.unavailable, "the number of the lease has been raised meanwhile")
    }

    /// Begins a change of what is declared in a schema that others share: one daemon at a time, and none that has been
    /// taken for gone. What is waited for then is not to take so long that another one is.
    func lockDeclarations(_ catalog: Catalog) throws(StorageFailure) {
        try catalog.lockCreation()
        let result = try catalog.connection.query(
            CollectionStatement.fenceSQL(control.table), lease.parameters(of: fence), [.int8, .int8], catalog.wait)
        try check(result, of: fence, catalog.connection)
        try catalog.run("SET LOCAL lock_timeout = '500ms'", "declare collections")
    }

    /// The lease has another number by now. Where that is news, the keeper finds out whose it is.
    private func noteChange(of fence: Int64) {
        if lease.fence == fence { availability.doubt() }
    }

    // MARK: Batches

    func write(_ batch: borrowing WriteBatch<PostgreSQLCollection>) throws(StorageFailure) {
        defer { noteChanges(of: batch) }
        var highest: UInt64 = 0
        for position in 0..<batch.count {
            let mutation = batch[position]
            highest = max(highest, mutation.sequence)
            if mutation.expiresAt != 0 { mutation.collection.mayExpire.store(true, ordering: .relaxed) }
        }
        if lease.numbersChanges {
            guard batch.count <= TransactionNumber.maximumPlaces else {
                throw StorageFailure(.unsupported, "a batch has more than \(TransactionNumber.maximumPlaces) mutations")
            }
        } else {
            try reserve(through: highest, batch.call)
        }
        if hold != nil, try writeHeld(batch) { return }
        if let error = try write(batch, 0..<batch.count) { throw error.failure("write") }
    }

    private func noteChanges(of batch: borrowing WriteBatch<PostgreSQLCollection>) {
        guard lease.numbersChanges else { return }
        var last: PostgreSQLCollection?
        for position in 0..<batch.count where batch[position].collection !== last {
            let collection = batch[position].collection
            committed(collection)
            last = collection
        }
    }

    /// Notes durably that sequence numbers up to `highest`, and some that follow, may be used.
    func reserve(through highest: UInt64, _ call: CallContext) throws(StorageFailure) {
        if highest <= lease.ceiling { return }
        let ceiling = SequenceBlock.last(of: highest)
        let wait = Wait(call, availability, isInterruptible: false)
        let isHeld = try use { (connection) throws(StorageFailure) in
            try connection.limitLocks(milliseconds: 0)
            return try lease.reserve(ceiling, connection, wait.on(connection))
        }
        guard !isHeld else { return }
        availability.doubt()
        throw StorageFailure(.unavailable, "another daemon may have taken the schema over")
    }

    /// Applies a part of a batch, each record that the server refuses by itself.
    ///
    /// - Returns: why nothing of it was applied.
    private func write(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>
    ) throws(StorageFailure) -> ServerError? {
        var retries = ConflictRetries(until: batch.deadline)
        while true {
            var overtaken: [Int] = []
            guard let error = try attempt(batch, range, &overtaken) else {
                // The others have been committed.
                for position in overtaken { writeAgain(batch, position, &retries) }
                return nil
            }
            if error.isConflict, retries.pause() { continue }
            let isBlocked = isBlocked(error)
            guard error.concernsRecord || isBlocked, !batch.isAtomic else { return error }
            if range.count == 1 {
                batch.refused(range.lowerBound, isBlocked ? .unavailable : .unsupported)
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

    /// Limits the statements of a transaction that writes records. While one waits for a record that another session
    /// has locked, neither the lease nor other records must.
    func limitStatements(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        let known = isShared ? BlockLimits.knownAmongDaemons : .known
        let limits = Clock.monotonic - lastBlocked < BlockLimits.memory ? known : .first
        try connection.limitLocks(milliseconds: limits.lockMilliseconds)
        // The locks of other servers count there, and only a statement as a whole has a limit.
        try connection.limitStatements(wait, atMost: settings.plansOnce ? .max : limits.statementMilliseconds)
    }

    /// Whether a transaction has failed as a record was locked by another session for too long, and notes that.
    private func isBlocked(_ error: ServerError) -> Bool {
        guard isTimeout(error) else { return false }
        lastBlocked = Clock.monotonic
        return true
    }

    private func isTimeout(_ error: ServerError) -> Bool {
        error.isLockTimeout || !settings.plansOnce && error.isStatementTimeout
    }

    /// Applies a mutation alone that another client's has overtaken.
    func writeAgain(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ position: Int, _ retries: inout ConflictRetries
    ) {
        repeat {
            do throws(StorageFailure) {
                var overtaken: [Int] = []
                let error = try attempt(batch, position..<position + 1, &overtaken)
                if let error, !error.isConflict {
                    batch.refused(position, error.concernsRecord ? .unsupported : error.status)
                    return
                }
                if error == nil, overtaken.isEmpty { return }
            } catch {
                batch.refused(position, error.status)
                return
            }
        } while retries.pause()
        batch.refused(position, .unavailable)
    }

    /// Applies a part of a batch in one transaction.
    ///
    /// - Parameters:
    ///   - overtaken: becomes the positions of mutations that another client's have overtaken, and that were not
    ///     applied, while the others were.
    ///   - hold: the transaction, where that has been begun as records were locked.
    /// - Returns: why the server has undone it.
    func attempt(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>, _ overtaken: inout [Int],
        in hold: Hold? = nil
    ) throws(StorageFailure) -> ServerError? {
        let connection = if let hold { hold.connection } else { try connected() }
        let wait = Wait(batch.call, availability, isInterruptible: false).on(connection)
        let plan = WritePlan(batch, range, isShared: isShared)
        var progress = Progress.undecided
        commits.begin(batch, range)
        defer { commits.end() }
        do throws(StorageFailure) {
            let error = try execute(plan, batch, connection, wait, &progress, &overtaken, isBegun: hold != nil)
            if error != nil { release(connection) }
            return error
        } catch {
            release(connection)
            if progress == .committing {
                try resolveOutcome(of: batch, range, after: error)
                return nil
            }
            if hold != nil { return .locksLost }
            throw error
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
        _ wait: Wait, _ progress: inout Progress, _ overtaken: inout [Int], isBegun: Bool
    ) throws(StorageFailure) -> ServerError? {
        if !isBegun { try limitStatements(connection, wait) }
        let fence = isBegun ? nil : try begin(connection)
        if !plan.idLocks.isEmpty { try connection.send(.lockIDs, control, plan.idLocks.parameters) }
        for step in plan.steps { try connection.send(step.statement, step.scope, step.parameters(batch)) }
        connection.warning = nil
        if batch.isAtomic { try connection.sync(wait) } else { try commit(connection, wait, &progress) }
        var failure = if let fence { try receiveBeginning(connection, wait, fence) } else { ServerError?.none }
        if !plan.idLocks.isEmpty {
            let error = try connection.receive(wait).error
            failure = failure ?? error
        }
        var isApplied = true
        for step in plan.steps {
            let result = try connection.receive(wait)
            failure = failure ?? result.error
            if result.error == nil, !step.judge(result, batch, &overtaken) { isApplied = false }
        }
        if !batch.isAtomic {
            let commit = try connection.receive(wait)
            try connection.finish(wait)
            if let failure {
                progress = .undecided
                return failure
            }
            return try check(commit: commit, connection, &progress)
        }
        try connection.finish(wait)
        if let failure { return failure }
        guard isApplied else {
            connection.recover()
            return overtaken.isEmpty ? nil : .overtaken
        }
        // The server may have ended a transaction in which nothing happened for too long.
        if isShared, connection.hasNews() { return .locksLost }
        try commit(connection, wait, &progress)
        let commit = try connection.receive(wait)
        try connection.finish(wait)
        return try check(commit: commit, connection, &progress)
    }

    /// Sends the end of a transaction, with all that was queued.
    func commit(_ connection: Connection, _ wait: Wait, _ progress: inout Progress) throws(StorageFailure) {
        try connection.extendCommit(wait)
        try connection.send(.commit, control, Parameters())
        progress = .committing
        try connection.sync(wait)
    }

    /// Receives the results of what every transaction begins with.
    ///
    /// - Returns: why it has failed.
    func receiveBeginning(
        _ connection: Connection, _ wait: Wait, _ fence: Int64
    ) throws(StorageFailure) -> ServerError? {
        let failure = try connection.receive(wait).error
        let result = try connection.receive(wait)
        if let error = result.error, error.state == Lease.lossState {
            noteChange(of: fence)
            return .fenceRaised
        }
        // Its renewal is being replicated, say.
        if let error = result.error, isTimeout(error) { return .leaseBusy }
        return failure ?? result.error
    }

    /// Whether a commit has succeeded; an error after which its outcome is unknown is thrown.
    func check(
        commit: QueryResult, _ connection: Connection, _ progress: inout Progress
    ) throws(StorageFailure) -> ServerError? {
        guard let error = commit.error else {
            // A server that is not used any more may confirm what its successor does not have.
            guard availability.isCurrent(connection.generation) else {
                throw StorageFailure(.unavailable, "another server has been chosen during a commit")
            }
            if let warning = connection.warning { throw .unconfirmed(warning) }
            if commit.command == "COMMIT" { return nil }
            progress = .undecided
            throw StorageFailure(.unavailable, "the server has undone a transaction")
        }
        guard error.isConflict || error.concernsRecord else { throw error.failure("commit") }
        progress = .undecided
        return error
    }
}

extension Connection {
    /// A connection to the server that is used.
    ///
    /// - Throws: `unavailable` where the address leads to another one by now; the keeper finds out.
    convenience init(
        _ settings: ConnectionSettings, to server: ChosenServer, _ availability: Availability
    ) throws(StorageFailure) {
        do throws(StorageFailure) {
            try self.init(settings, to: server.address)
        } catch {
            availability.doubt()
            throw error
        }
        generation = server.generation
        guard identity.isSameServer(as: server.identity), !identity.isReadOnly else {
            availability.doubt(server: true)
            throw StorageFailure(.unavailable, "\(server.address) is another server than before")
        }
    }
}
