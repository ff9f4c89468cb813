import CRUDPluginKit
import CSQLite

/// A reader's connection and the read transaction that it may hold.
// It lives in the reader's mutex, so that one thread at a time uses the connection.
struct ReadSession: @unchecked Sendable {
    /// The most that SQLite maps, 2 GiB less a page; it reads what lies beyond by system calls. Mapped pages are not
    /// copied into a cache, and a commit of the writer does not make this connection read them again.
    private static let mappedBytes = 0x7FFF_0000
    /// Reads run on the host's event loop: no longer than a hiccup.
    private static let busyTimeoutMilliseconds: Int32 = 20

    private let connection: Connection
    private let beginning: Statement
    private let ending: Statement

    init(path: String) throws(StorageFailure) {
        connection = try Connection(
            path: path, flags: SQLITE_OPEN_READONLY, busyTimeout: Self.busyTimeoutMilliseconds)
        try connection.execute("PRAGMA mmap_size = \(Self.mappedBytes)")
        beginning = try connection.prepare("BEGIN")
        ending = try connection.prepare("COMMIT")
    }

    /// The statement of that kind, in a read transaction; it must be reset after use.
    func statement(_ kind: CollectionStatement, _ collection: SQLiteCollection) throws(StorageFailure) -> Statement {
        if !connection.isInTransaction { try connection.run(beginning) }
        return try connection.statement(kind, collection)
    }

    /// The statement of that kind for queries, in a read transaction; it must be reset after use.
    func statement(
        _ kind: QueryStatement, _ collection: SQLiteCollection, _ index: PropertyIndex?
    ) throws(StorageFailure) -> Statement {
        if !connection.isInTransaction { try connection.run(beginning) }
        return try connection.statement(kind, collection, index)
    }

    /// The entries of a run of an index; those of a single key by id, and only ids of the range.
    func start(
        _ run: IndexRange.Run, _ collection: SQLiteCollection, _ index: PropertyIndex, _ ids: IDRange
    ) throws(StorageFailure) -> Statement {
        let row = try statement(run.isPoint ? .group : .range, collection, index)
        try bind(run, row)
        if run.isPoint { try bind(ids, row, first: 3) }
        return row
    }

    /// To be called between queries.
    func trimStatements() {
        connection.trimStatements()
    }

    func step(_ statement: Statement) throws(StorageFailure) -> Bool {
        try connection.step(statement)
    }

    func check(_ code: Int32) throws(StorageFailure) {
        try connection.check(code)
    }

    /// Binds the bounds to two parameters.
    func bind(_ range: IDRange, _ statement: Statement, first: Int32 = 1) throws(StorageFailure) {
        try check(statement.bind(first, copying: range.lower))
        if let upper = range.upper {
            try check(statement.bind(first + 1, copying: upper))
        } else {
            // In SQLite's order every blob is above every text.
            try check(statement.bind(first + 1, blob: emptyBytes))
        }
    }

    /// Binds rank and bounds to parameters 1 to 3.
    func bind(_ run: IndexRange.Run, _ statement: Statement) throws(StorageFailure) {
        try check(statement.bind(1, integer: run.rank.rawValue))
        try check(run.lower.bind(2, statement))
        try check(run.upper.bind(3, statement))
    }

    /// Ends the read transaction, if there is one.
    func end() {
        guard connection.isInTransaction else { return }
        // Ending a read transaction writes nothing; should it fail, the next read goes on in it.
        try? connection.run(ending)
    }
}
