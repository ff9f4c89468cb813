import CRUDPluginKit
import CSQLite
import Glibc

/// A connection to the database file, used by one thread at a time. It owns the statements prepared on it.
final class Connection {
    let handle: OpaquePointer
    private var statements = StatementCache()
    private var queryStatements: [QueryStatement.Key: Statement] = [:]
    /// More statements of queries than this are not kept; 1000 take a few megabytes.
    private static let maximumQueryStatements = 1000

    /// - Parameters:
    ///   - flags: SQLITE_OPEN_READWRITE or SQLITE_OPEN_READONLY.
    ///   - busyTimeout: how long a call may wait for another process to let go of a lock, in milliseconds.
    init(path: String, flags: Int32, busyTimeout: Int32) throws(StorageFailure) {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard code == SQLITE_OK, let handle else {
            let failure = StorageFailure(
                sqlite: code, systemError: handle.map(sqlite3_system_errno) ?? 0,
                message: String(cString: sqlite3_errstr(code)), action: "cannot open \(path)")
            sqlite3_close(handle)
            throw failure
        }
        self.handle = handle
        sqlite3_busy_timeout(handle, busyTimeout)
    }

    deinit {
        while let statement = sqlite3_next_stmt(handle, nil) { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    // MARK: Statements

    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// How many rows the last INSERT, UPDATE or DELETE touched.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// The prepared statement of that kind for a collection; it must be reset after use.
    func statement(_ kind: CollectionStatement, _ collection: SQLiteCollection) throws(StorageFailure) -> Statement {
        if let statement = statements.statement(kind, collection) { return statement }
        let statement = try prepare(kind.sql(collection.table))
        statements.insert(statement, kind, collection)
        return statement
    }

    /// The prepared statement of that kind for queries; it must be reset after use.
    ///
    /// - Parameter index: what it looks into, where it does.
    func statement(
        _ kind: QueryStatement, _ collection: SQLiteCollection, _ index: PropertyIndex?
    ) throws(StorageFailure) -> Statement {
        let key = QueryStatement.Key(statement: kind, collection: collection.number, index: index?.number ?? -1)
        if let statement = queryStatements[key] { return statement }
        let statement = try prepare(kind.sql(collection.table, index))
        queryStatements[key] = statement
        return statement
    }

    /// Lets go of the statements of queries if they have become too many; to be called while none is in use.
    func trimStatements() {
        guard queryStatements.count > Self.maximumQueryStatements else { return }
        for statement in queryStatements.values { sqlite3_finalize(statement.handle) }
        queryStatements.removeAll()
    }

    /// Compiles SQL of one statement.
    func prepare(_ sql: String) throws(StorageFailure) -> Statement {
        var statement: OpaquePointer?
        errno = 0
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code, "cannot prepare a statement") }
        return Statement(handle: statement)
    }

    /// Runs to the next row and says whether there is one. The statement is reset if that fails.
    func step(_ statement: Statement) throws(StorageFailure) -> Bool {
        errno = 0
        switch sqlite3_step(statement.handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let failure = failure(code, "cannot execute a statement")
            statement.reset()
            throw failure
        }
    }

    /// Runs a statement that has no rows and resets it.
    func run(_ statement: Statement) throws(StorageFailure) {
        _ = try step(statement)
        statement.reset()
    }

    func check(_ code: Int32) throws(StorageFailure) {
        if code != SQLITE_OK { throw failure(code, "cannot bind a value") }
    }

    // MARK: SQL of our own, once

    /// Executes SQL that yields no rows worth having.
    func execute(_ sql: String) throws(StorageFailure) {
        errno = 0
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        if code != SQLITE_OK { throw failure(code, "cannot execute \(sql)") }
    }

    /// Runs a query with text parameters and hands each row to `row`.
    func query(_ sql: String, _ parameters: [String] = [], _ row: (Statement) -> Void) throws(StorageFailure) {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement.handle) }
        for (index, parameter) in parameters.enumerated() {
            try check(statement.bind(Int32(index + 1), copying: Array(parameter.utf8)))
        }
        while try step(statement) { row(statement) }
    }

    /// The integer in the first row of a query; nil if it has none.
    func integer(_ sql: String, _ parameters: [String] = []) throws(StorageFailure) -> Int64? {
        var integer: Int64?
        try query(sql, parameters) { integer = integer ?? $0.integer(0) }
        return integer
    }

    // MARK: Failures

    /// The failure of the call that was just made. The system's number tells a full disk from a broken one;
    /// `sqlite3_system_errno` does not know it where a COMMIT has failed.
    func failure(_ code: Int32, _ action: String) -> StorageFailure {
        StorageFailure(
            sqlite: code, systemError: code & 0xFF == SQLITE_IOERR ? errno : 0,
            message: String(cString: sqlite3_errmsg(handle)), action: action)
    }
}
