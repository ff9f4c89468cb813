import CRUDPluginKit
import CSQLite

/// A reader's connection and the read transaction that it may hold.
// It lives in the reader's mutex, so that one thread at a time uses the connection.
struct ReadSession: @unchecked Sendable {
    /// The most that SQLite maps, 2 GiB less a page; it reads what lies beyond by system calls. Mapped pages are not
    /// copied into a cache, and a commit of the writer does not make this connection read them again. But an error of
    /// the disk is then no result code but SIGBUS, which ends the process.
    private static let mappedBytes = 0x7FFF_0000
    /// What SQLite keeps of pages that are not mapped: the upper ones of the index by id for some million records. A
    /// commit of the writer empties it.
    private static let cacheKibibytes = 16_384
    /// Reads run on the host's event loop: no longer than a hiccup.
    private static let busyTimeoutMilliseconds: Int32 = 20
    /// Of SQLite's virtual machine, each some ten nanoseconds.
    private static let instructionsBetweenInterruptionChecks: Int32 = 20_000

    private let connection: Connection
    private let beginning: Statement
    private let ending: Statement

    init(_ options: SQLiteOptions) throws(StorageFailure) {
        connection = try Connection(
            path: options.path, flags: SQLITE_OPEN_READONLY, busyTimeout: Self.busyTimeoutMilliseconds)
        // 0 in so many words, as a distribution may compile SQLite with another default.
        try connection.execute(
            """
            PRAGMA mmap_size = \(options.mmap ? Self.mappedBytes : 0);
            PRAGMA cache_size = -\(Self.cacheKibibytes)
            """)
        beginning = try connection.prepare("BEGIN")
        ending = try connection.prepare("COMMIT")
        connection.checkForInterruption(every: Self.instructionsBetweenInterruptionChecks)
    }

    /// The call whose statements end when nobody waits for the result; nil: none.
    var call: CallContext? {
        get { connection.call }
        nonmutating set { connection.call = newValue }
    }

    /// The statement of that kind, in a read transaction; it must be reset after use.
    func statement(_ kind: CollectionStatement, _ scope: StatementScope) throws(StorageFailure) -> Statement {
        if !connection.isInTransaction { try connection.run(beginning) }
        return try connection.statement(kind, scope)
    }

    func step(_ statement: Statement) throws(StorageFailure) -> Bool {
        try connection.step(statement)
    }

    /// The integer of a statement with one row, which is reset.
    func integer(_ statement: Statement) throws(StorageFailure) -> Int64 {
        defer { statement.reset() }
        return try connection.step(statement) ? statement.integer(0) : 0
    }

    func check(_ code: Int32) throws(StorageFailure) {
        try connection.check(code)
    }

    /// Ends the read transaction, if there is one.
    func end() {
        guard connection.isInTransaction else { return }
        // Ending a read transaction writes nothing; should it fail, the next read continues in it.
        try? connection.run(ending)
    }
}
