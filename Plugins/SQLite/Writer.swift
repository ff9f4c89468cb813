import CRUDPluginKit
import CSQLite

/// The connection that writes: each batch is one transaction, and so is one sync of the disk.
final class Writer {
    private let connection: Connection
    private let log: WriteAheadLog
    private let beginning: Statement
    private let committing: Statement
    private let rollingBack: Statement

    init(connection: Connection, log: WriteAheadLog) throws(StorageFailure) {
        self.connection = connection
        self.log = log
        beginning = try connection.prepare("BEGIN IMMEDIATE")
        committing = try connection.prepare("COMMIT")
        rollingBack = try connection.prepare("ROLLBACK")
    }

    func idle() {
        log.idle()
    }

    // MARK: Transactions

    /// Runs `body` in a transaction, which is undone if it throws.
    func transaction<Result>(_ body: () throws(StorageFailure) -> Result) throws(StorageFailure) -> Result {
        try connection.run(beginning)
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    private func commit() throws(StorageFailure) {
        do {
            try connection.run(committing)
        } catch {
            // All was written but the disk did not confirm it: after a crash it may be there.
            guard csqlite_is_sync_failure(sqlite3_extended_errcode(connection.handle)) else { throw error }
            throw StorageFailure(.outcomeUnknown, error.message)
        }
        log.committed()
    }

    private func rollBack() {
        // After some failures SQLite has done so already.
        guard connection.isInTransaction else { return }
        // A rollback writes nothing; should it fail, so does the next BEGIN, which is reported.
        try? connection.run(rollingBack)
    }

    // MARK: Mutations

    /// Applies a batch in one transaction.
    func write(_ batch: borrowing WriteBatch<SQLiteCollection>) throws(StorageFailure) {
        try connection.run(beginning)
        do {
            for position in 0..<batch.count {
                if try !settle(batch[position], position, batch), batch.isAtomic { return rollBack() }
            }
            try commit()
        } catch {
            rollBack()
            throw error
        }
    }

    /// Applies one mutation and says whether it took effect.
    private func settle(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        do {
            return try apply(mutation, position, batch)
        } catch let error where error.status == .unsupported {
            // Too big for SQLite, or against a constraint that somebody has put on the table. SQLite has undone this
            // statement alone.
            batch.refused(position, .unsupported)
            return false
        }
    }

    private func apply(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        switch (mutation.kind, mutation.precondition) {
        case (.put, .absent):
            if try execute(.insert, mutation) { return batch.applied(position, replacing: false) }
            return batch.refused(position, .exists)
        case (.put, .none):
            if try execute(.update, mutation) { return batch.applied(position, replacing: true) }
            _ = try execute(.insert, mutation)
            return batch.applied(position, replacing: false)
        case (.put, .present):
            if try execute(.update, mutation) { return batch.applied(position, replacing: true) }
            return batch.refused(position, .notFound)
        case (.put, .revision):
            if try execute(.updateRevision, mutation) { return batch.applied(position, replacing: true) }
            return try refuse(mutation, position, batch)
        case (.remove, .none), (.remove, .present):
            if try execute(.delete, mutation) { return batch.applied(position, replacing: false) }
            return batch.refused(position, .notFound)
        case (.remove, .revision):
            if try execute(.deleteRevision, mutation) { return batch.applied(position, replacing: false) }
            return try refuse(mutation, position, batch)
        case (.remove, .absent):
            return batch.refused(position, try exists(mutation) ? .exists : .notFound)
        case (.check, _):
            return try check(mutation, position, batch)
        default:
            return batch.refused(position, .unsupported)
        }
    }

    /// Runs a statement with what a mutation brings and says whether it touched a row.
    private func execute(
        _ kind: CollectionStatement, _ mutation: Mutation<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(kind, mutation.collection)
        try connection.check(statement.bind(1, text: mutation.id))
        if mutation.kind == .put {
            try connection.check(statement.bind(2, text: mutation.revision))
            switch mutation.collection.format {
            case .json, .xml: try connection.check(statement.bind(3, text: mutation.item))
            case .plist: try connection.check(statement.bind(3, blob: mutation.item))
            }
        }
        if mutation.precondition == .revision {
            try connection.check(statement.bind(4, text: mutation.expected))
        }
        try connection.run(statement)
        return connection.changes > 0
    }

    private func exists(_ mutation: Mutation<SQLiteCollection>) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(.readRevision, mutation.collection)
        defer { statement.reset() }
        try connection.check(statement.bind(1, text: mutation.id))
        return try connection.step(statement)
    }

    /// Settles a mutation that changes nothing.
    private func check(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(.readRevision, mutation.collection)
        defer { statement.reset() }
        try connection.check(statement.bind(1, text: mutation.id))
        let isThere = try connection.step(statement)
        do {
            let current = isThere ? try storedRevision(statement, mutation.collection) : nil
            guard batch.permits(mutation, at: position, current: current) else { return false }
            return batch.applied(position, replacing: false)
        } catch {
            return batch.refused(position, error.status)
        }
    }

    /// Settles a mutation whose expected revision is not there.
    private func refuse(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(.readRevision, mutation.collection)
        defer { statement.reset() }
        try connection.check(statement.bind(1, text: mutation.id))
        guard try connection.step(statement) else { return batch.refused(position, .notFound) }
        do {
            return batch.mismatched(position, current: try storedRevision(statement, mutation.collection))
        } catch {
            return batch.refused(position, error.status)
        }
    }
}
