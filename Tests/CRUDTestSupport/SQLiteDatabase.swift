/// A database that somebody else than the plugin works with.
package enum SQLiteDatabase {
    /// Executes SQL in one transaction.
    package static func execute(_ sql: String, in path: String) throws {
        let program = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1], timeout=20)
            database.executescript("BEGIN IMMEDIATE;" + sys.argv[2] + ";COMMIT")
            """
        let outcome = try Command.run("/usr/bin/python3", ["-c", program, path, sql])
        guard outcome.status == .exited(0) else { throw Failure(outcome.errors) }
    }

    /// The one value that a query returns, as text.
    package static func value(_ sql: String, in path: String) throws -> String {
        let program = """
            import sqlite3, sys
            print(sqlite3.connect(sys.argv[1], timeout=20).execute(sys.argv[2]).fetchone()[0], end="")
            """
        let outcome = try Command.run("/usr/bin/python3", ["-c", program, path, sql])
        guard outcome.status == .exited(0) else { throw Failure(outcome.errors) }
        return outcome.output
    }
}
