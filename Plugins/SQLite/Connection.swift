import CRUDPluginKit
import CSQLite
import Glibc

/// A connection to the database file, used by one thread at a time. It owns the statements prepared on it.
final class Connection {
    let handle: OpaquePointer
    private var statements = StatementCache()
    /// What SQLite's callback looks at, in memory of its own: it is set for each read.
    private let interruptingCall = UnsafeMutablePointer<CallContext?>.allocate(capacity: 1)

    /// - Parameters:
    ///   - flags: SQLITE_OPEN_READWRITE or SQLITE_OPEN_READONLY.
    ///   - busyTimeout: how long a call may wait for another process to release a lock, in milliseconds.
    init(path: String, flags: Int32, busyTimeout: Int32) throws(StorageFailure) {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard code == SQLITE_OK, let handle else {
            let failure = StorageFailure(
                sqlite: code, systemError: handle.map(sqlite3_system_errno) ?? 0,
                message: String(cString: sqlite3_errstr(code)), action: "cannot open \(path)")
            sqlite3_close(handle)
            interruptingCall.deallocate()
            throw failure
        }
        self.handle = handle
        interruptingCall.initialize(to: nil)
        sqlite3_busy_timeout(handle, busyTimeout)
    }

    deinit {
        while let statement = sqlite3_next_stmt(handle, nil) { sqlite3_finalize(statement) }
        sqlite3_close(handle)
        interruptingCall.deallocate()
    }

    // MARK: Interruption

    /// The call whose statements end when nobody waits for the result; nil: none.
    var call: CallContext? {
        get { interruptingCall.pointee }
        set { interruptingCall.pointee = newValue }
    }

    /// Has statements look at ``call`` each time that SQLite's virtual machine has executed so many instructions.
    func checkForInterruption(every instructions: Int32) {
        sqlite3_progress_handler(
            handle, instructions,
            { call in
                // The address given below, which is valid until the connection is closed.
                call!.assumingMemoryBound(to: CallContext?.self).pointee?.isInterrupted == true ? 1 : 0
            }, interruptingCall)
    }

    // MARK: Statements

    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Whether a trigger has made the last statement fail.
    var hasTriggerFailed: Bool { csqlite_is_trigger_failure(sqlite3_extended_errcode(handle)) }

    /// Whether the last statement has failed as it needed more pages than the database may have.
    private(set) var hasReachedPageLimit = false

    /// How many rows the last INSERT, UPDATE or DELETE touched.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// The prepared statement of that kind for a scope; it must be reset after use.
    func statement(_ kind: CollectionStatement, _ scope: StatementScope) throws(StorageFailure) -> Statement {
        if let statement = statements.statement(kind, scope) { return statement }
        let statement = try prepare(kind.sql(scope))
        statements.insert(statement, kind, scope)
        return statement
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

    // MARK: The file

    /// Tells SQLite's methods of the database file something (<https://www.sqlite.org/c3ref/file_control.html>); false
    /// if that fails.
    @discardableResult
    func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer) -> Bool {
        sqlite3_file_control(handle, "main", operation, argument) == SQLITE_OK
    }

    // MARK: Failures

    /// The failure of the call that was just made. The system's number tells a full disk from a broken one;
    /// `sqlite3_system_errno` does not know it where a COMMIT has failed.
    func failure(_ code: Int32, _ action: String) -> StorageFailure {
        // SQLite says the same of a full disk.
        hasReachedPageLimit = code == SQLITE_FULL && errno != ENOSPC
        return StorageFailure(
            sqlite: code, systemError: [SQLITE_IOERR, SQLITE_CORRUPT].contains(code & 0xFF) ? errno : 0,
            message: String(cString: sqlite3_errmsg(handle)), action: action)
    }
}
