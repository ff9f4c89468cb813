import Glibc

/// A transaction of another program that writes to a SQLite database: others that want to write have to wait.
package final class SQLiteLock {
    private let process: ChildProcess

    /// Begins the transaction.
    ///
    /// - Parameters:
    ///   - isExclusive: whether others cannot even open the database. None may have it open.
    ///   - seconds: after so many the transaction ends by itself.
    package init(of path: String, isExclusive: Bool = false, seconds: Int = 3600) throws {
        let directory = try TemporaryDirectory()
        let program = """
            import sqlite3, sys, time
            database = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
            if sys.argv[3] == "exclusive":
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                database.execute("BEGIN EXCLUSIVE")
                database.execute("CREATE TABLE held (x)")
            else:
                database.execute("BEGIN IMMEDIATE")
            open(sys.argv[2], "w").close()
            time.sleep(int(sys.argv[4]))
            """
        let mark = "\(directory.path)/locked"
        let kind = isExclusive ? "exclusive" : ""
        let arguments = ["-c", program, path, mark, kind, "\(seconds)"]
        process = try ChildProcess("/usr/bin/python3", arguments, descriptors: [])
        let deadline = Deadline()
        while !Files.exists(mark) {
            guard try !deadline.hasPassed && process.isRunning else { throw Failure("\(path) cannot be locked") }
            usleep(5000)
        }
    }

    /// Rolls the transaction back.
    package func end() throws {
        process.signal(SIGKILL)
        _ = try process.waitForExit()
    }

    deinit { process.signal(SIGKILL) }
}
