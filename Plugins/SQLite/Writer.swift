import CRUDPluginKit
import CSQLite
import Glibc

/// The connection that writes: each batch is one transaction, and so is one sync of the disk.
final class Writer {
    let connection: Connection
    let log: WriteAheadLog
    let database: DatabaseRoom
    let reserve: Reserve
    private let foreignWrites: ForeignWrites
    private let catalog: Catalog
    private let host: Host
    private let beginning: Statement
    private let committing: Statement
    private let rollingBack: Statement
    /// No sequence number above this has been stored. It is raised by a block, in the transaction that first needs a
    /// higher one.
    private(set) var sequenceCeiling: UInt64 = 0
    /// How often the transaction that begins looks at the lock of another process that writes.
    private var maximumLooks = LockWait.brief.rawValue
    /// Whether the last transaction has waited in vain: the next one waits briefly, lest their times add up.
    private var isLocked = false

    /// How long a transaction waits for another process that writes, as a number of looks at its lock. Each pause
    /// between two of them is longer by a millisecond, up to 20 ms.
    enum LockWait: Int32 {
        /// A quarter of a second: for upkeep, which is tried again, and behind which writes wait.
        case brief = 22
        /// Five seconds. Litestream wants that of applications, as it copies the log meanwhile
        /// (<https://litestream.io/tips/>).
        case full = 260
    }

    /// After 15 ms.
    private static let looksBeforeRelease: Int32 = 4
    /// Of SQLite's virtual machine: some ten milliseconds.
    private static let instructionsBetweenProgress: Int32 = 1_000_000

    init(
        connection: Connection, log: WriteAheadLog, database: DatabaseRoom, reserve: Reserve,
        foreignWrites: ForeignWrites, host: Host
    ) throws(StorageFailure) {
        self.connection = connection
        self.log = log
        self.database = database
        self.reserve = reserve
        self.foreignWrites = foreignWrites
        self.host = host
        catalog = Catalog(connection: connection)
        beginning = try connection.prepare("BEGIN IMMEDIATE")
        committing = try connection.prepare("COMMIT")
        rollingBack = try connection.prepare("ROLLBACK")
        waitForOthers()
    }

    deinit { sqlite3_busy_handler(connection.handle, nil, nil) }

    /// Has a transaction wait while another process writes, and tell the host that it is not stuck.
    private func waitForOthers() {
        sqlite3_busy_handler(
            connection.handle,
            { writer, looks in
                // Given below; the connection, which calls this, is used by the writer alone.
                let writer = Unmanaged<Writer>.fromOpaque(writer!).takeUnretainedValue()
                guard looks < writer.maximumLooks else { return 0 }
                usleep(UInt32(min(looks + 1, 20)) * 1000)
                // It may be a checkpoint, which keeps writers out and waits for readers, so for those of this thread.
                if looks == Writer.looksBeforeRelease { writer.log.releaseSnapshots() }
                writer.host.progress(0)
                return 1
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Reads what sequence numbers may have been used; to be called once the schema is there.
    func readSequenceCeiling() throws(StorageFailure) {
        sequenceCeiling = UInt64(clamping: try connection.integer("SELECT max(ceiling) FROM crudd_sequence") ?? 0)
    }

    // MARK: Transactions

    /// Runs `body`, which changes the schema, in a transaction, which is undone if it throws and may be repeated.
    ///
    /// - Parameter wait: for another process, `full` where a client waits for it.
    func transaction<Result>(
        _ purpose: Purpose, waiting wait: LockWait = .full, _ body: () throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        reportProgress(true)
        defer { reportProgress(false) }
        return try withRoom(purpose) { () throws(StorageFailure) in try transaction(wait, body) }
    }

    /// Runs `body` in a transaction, which is undone if it throws.
    private func transaction<Result>(
        _ wait: LockWait, _ body: () throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        try begin(wait)
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    private func begin(_ wait: LockWait) throws(StorageFailure) {
        maximumLooks = (isLocked ? .brief : wait).rawValue
        do {
            try connection.run(beginning)
        } catch {
            isLocked = error.status == .unavailable
            throw error
        }
        isLocked = false
        foreignWrites.began()
    }

    private func commit() throws(StorageFailure) {
        do {
            try connection.run(committing)
        } catch {
            // All was written but the disk did not confirm it: after a crash it may be there.
            guard csqlite_is_sync_failure(sqlite3_extended_errcode(connection.handle)) else { throw error }
            throw StorageFailure(.outcomeUnknown, error.message)
        }
        foreignWrites.ended(hasWritten: log.takeCommit())
        log.checkpointIfLong()
    }

    private func rollBack() {
        defer { foreignWrites.ended(hasWritten: false) }
        // After some failures SQLite has done so already.
        guard connection.isInTransaction else { return }
        // A rollback writes nothing; should it fail, so does the next BEGIN, which is reported.
        try? connection.run(rollingBack)
    }

    /// Sets whether statements that take long tell the host that they advance.
    private func reportProgress(_ isReported: Bool) {
        sqlite3_progress_handler(
            connection.handle, isReported ? Self.instructionsBetweenProgress : 0,
            { writer in
                // Given below, and gone before it is.
                Unmanaged<Writer>.fromOpaque(writer!).takeUnretainedValue().host.progress(0)
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    // MARK: Batches

    /// Applies a part of a batch without the mutations that have been refused.
    ///
    /// - Returns: the position of another one that a trigger refuses, in which case nothing was applied; nil: all of
    ///   it was applied.
    func attempt(
        _ batch: borrowing WriteBatch<SQLiteCollection>, _ positions: Range<Int>, without refused: Set<Int>
    ) throws(StorageFailure) -> Int? {
        try begin(.full)
        do {
            var ceiling = sequenceCeiling
            var filled: [SQLiteCollection] = []
            for position in positions where !refused.contains(position) {
                let mutation = batch[position]
                let effect = try apply(mutation, position, batch)
                if effect != .applied, batch.isAtomic {
                    rollBack()
                    return nil
                }
                if effect == .refusedByTrigger {
                    rollBack()
                    return position
                }
                if mutation.sequence > ceiling { ceiling = SequenceBlock.last(of: mutation.sequence) }
                if mutation.kind == .setKeys, filled.last !== mutation.collection { filled.append(mutation.collection) }
            }
            try raise(to: ceiling)
            for collection in filled { try advanceFilling(of: collection.layout, now: batch.now) }
            try commit()
            sequenceCeiling = ceiling
            return nil
        } catch {
            rollBack()
            throw error
        }
    }

    /// Runs `body`, upkeep that uses sequence numbers, in a transaction, which is undone if it throws and may be
    /// repeated.
    ///
    /// - Parameter body: it raises the number that it is given to the highest sequence number that it has used.
    func transaction<Result>(
        _ purpose: Purpose, numbering body: (inout UInt64) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        try withRoom(purpose) { () throws(StorageFailure) in
            var ceiling = sequenceCeiling
            let result = try transaction(.brief) { () throws(StorageFailure) in
                var highest = sequenceCeiling
                let result = try body(&highest)
                if highest > sequenceCeiling { ceiling = SequenceBlock.last(of: highest) }
                try raise(to: ceiling)
                return result
            }
            sequenceCeiling = ceiling
            return result
        }
    }

    /// Notes in a transaction that sequence numbers up to `ceiling` may be used.
    private func raise(to ceiling: UInt64) throws(StorageFailure) {
        guard ceiling != sequenceCeiling else { return }
        let ceiling = Int64(clamping: ceiling)
        try connection.execute("REPLACE INTO crudd_sequence (rowid, ceiling) VALUES (1, \(ceiling))")
    }

    private func advanceFilling(of layout: SQLiteCollection.Layout, now: Int64) throws(StorageFailure) {
        for index in layout.indexes {
            let statement = try connection.statement(.advanceFilling, index)
            try connection.check(statement.bind(1, integer: now))
            try connection.run(statement)
        }
    }

    func idle(now: Int64) {
        do {
            let overtaken = try catalog.overtakenIndexes(now: now)
            if !overtaken.isEmpty {
                try transaction(.grows, waiting: .brief) { () throws(StorageFailure) in
                    for index in overtaken {
                        let table = quotedIdentifier(index.tableName)
                        try connection.execute(
                            CollectionStatement.advanceFillingSQL(index.number, table, now: "\(now)"))
                    }
                }
            }
        } catch let error where error.status == .unavailable {
            // Another process writes: next time.
        } catch {
            host.log(.warning, "cannot note how far indexes are filled: \(error.message)")
        }
        log.idle()
        _ = reserve.restore()
    }
}
