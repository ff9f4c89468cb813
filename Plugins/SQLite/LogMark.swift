import CRUDPluginKit
import CSQLite

/// A read transaction that is kept at the end that the write-ahead log has now: a checkpoint copies nothing beyond it,
/// and the log is not written from its start again.
final class LogMark {
    private let connection: Connection
    private let beginning: Statement
    private let looking: Statement
    private let ending: Statement

    private static let busyTimeoutMilliseconds: Int32 = 20

    init(path: String) throws(StorageFailure) {
        // One that only reads could not remove the log if it were closed last.
        connection = try Connection(
            path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: Self.busyTimeoutMilliseconds)
        beginning = try connection.prepare("BEGIN")
        // The transaction begins with the first page that is read. This one needs no schema, however large that is.
        looking = try connection.prepare("PRAGMA user_version")
        ending = try connection.prepare("COMMIT")
    }

    func set() throws(StorageFailure) {
        try connection.run(beginning)
        do {
            defer { looking.reset() }
            _ = try connection.step(looking)
        } catch {
            clear()
            throw error
        }
    }

    func clear() {
        // Ending a read transaction writes nothing.
        if connection.isInTransaction { try? connection.run(ending) }
    }
}
