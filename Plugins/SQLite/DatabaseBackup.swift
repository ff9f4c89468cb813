import CRUDPluginKit
import CSQLite
import Glibc

/// A copy of the database as of one moment, made by SQLite's backup API
/// (<https://www.sqlite.org/c3ref/backup_finish.html>).
///
/// The connection that it reads by holds a read transaction from the first to the last page. So what is committed
/// meanwhile is neither in the copy nor does it begin the copy anew, which SQLite does otherwise whenever another
/// connection has written; the write-ahead log cannot be written from its start until the copy is complete.
final class DatabaseBackup: StorageBackup {
    /// As many pages are copied between two looks at the clock: 256 KiB.
    private static let pagesAtATime: Int32 = 64
    /// How long a step takes.
    private static let stepNanoseconds: Int64 = 5_000_000
    private static let busyTimeoutMilliseconds: Int32 = 250

    private let source: Connection
    private let target: Connection
    private let pageBytes: UInt64
    private var backup: OpaquePointer?

    /// - Parameter path: of an empty file.
    init(of database: String, to path: String) throws(StorageFailure) {
        source = try Connection(
            path: database, flags: SQLITE_OPEN_READONLY, busyTimeout: Self.busyTimeoutMilliseconds)
        try source.execute("BEGIN")
        // The transaction begins with the first page that is read.
        _ = try source.integer("SELECT count(*) FROM sqlite_schema")
        pageBytes = UInt64(try source.integer("PRAGMA page_size") ?? 4096)
        target = try Connection(path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: Self.busyTimeoutMilliseconds)
        // Half a copy is of no use, so that it needs no journal; the host syncs the whole.
        try target.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        backup = sqlite3_backup_init(target.handle, "main", source.handle, "main")
        if backup == nil { throw target.failure(sqlite3_errcode(target.handle), "cannot begin a backup") }
    }

    func step(_ call: CallContext) throws(StorageFailure) -> BackupProgress {
        guard let backup else { throw StorageFailure(.internal, "the backup has ended") }
        let end = Self.now + Self.stepNanoseconds
        var isComplete = false
        repeat {
            errno = 0
            switch sqlite3_backup_step(backup, Self.pagesAtATime) {
            case SQLITE_OK: break
            case SQLITE_DONE: isComplete = true
            case let code: throw target.failure(code, "cannot copy the database")
            }
            if call.isInterrupted, !isComplete { throw .interrupted }
        } while !isComplete && Self.now < end
        let total = UInt64(clamping: sqlite3_backup_pagecount(backup)) * pageBytes
        let left = UInt64(clamping: sqlite3_backup_remaining(backup)) * pageBytes
        return BackupProgress(isComplete: isComplete, bytes: total - min(left, total), totalBytes: total)
    }

    func end() {
        guard let backup = backup.take() else { return }
        // It repeats what the last step has said.
        sqlite3_backup_finish(backup)
        try? source.execute("COMMIT")
    }

    deinit { end() }

    /// Nanoseconds of CLOCK_MONOTONIC.
    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
