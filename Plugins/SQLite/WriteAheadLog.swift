import CRUDPluginKit
import CSQLite

/// Keeps the write-ahead log short.
///
/// A commit appends pages to the log; a checkpoint copies them into the database file; once it has copied all of them
/// and no reader is in the log any more, the next transaction writes the log from its start again. SQLite's own
/// automatic checkpoint never gets that far beside busy readers: it copies no page that is newer than the oldest read
/// transaction, so that some always remain, and the log grows for ever.
///
/// Hence the writer does it, between two of its own transactions, while nothing is added to the log:
/// 1. Readers let go. What they begin next sees the end of the log and keeps no page from being copied.
/// 2. A passive checkpoint copies everything. Readers go on meanwhile.
/// 3. Readers let go once more. What they begin next reads the database file alone, so the log is free.
///
/// A reader in a walk without an end, or a transaction of another process, makes this fail; it is tried again whenever
/// the log has grown by another step. The log's file keeps its size when it is written anew, as syncing bytes written
/// over others is nearly twice as quick as syncing bytes appended; only what exceeded the limit is cut off.
final class WriteAheadLog {
    /// About 40 MiB. Pages are written into the database file once per checkpoint, however often they were written to
    /// the log: with random ids a checkpoint each 1000 pages, SQLite's default, makes one in a hundred writes wait
    /// 7 ms.
    static let pagesBeforeCheckpoint = 10_000
    private static let pagesBeforeRetry = 1_000
    /// What is cut off the log's file once the log is written from its start again.
    static let maximumKeptBytes = 48 << 20
    /// How long the log may stay in a quiet moment. Readers look each page up in it first, which costs them up to half
    /// of their pace, and it is read again when the file is opened after a crash.
    private static let pagesWhenIdle = 100

    private let connection: Connection
    private let readers: SQLiteReaders
    private let host: Host

    /// Set by SQLite after each commit.
    // SQLite keeps its address until the connection is closed, which outlives it.
    private let pages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    /// The log's pages at the last checkpoint; 0 if it was written from its start since.
    private var checkpointedPages = 0
    private var hasWarned = false

    init(connection: Connection, readers: SQLiteReaders, host: Host) {
        self.connection = connection
        self.readers = readers
        self.host = host
        pages.initialize(to: 0)
        // This takes the place of SQLite's automatic checkpoint.
        sqlite3_wal_hook(
            connection.handle,
            { pages, _, _, count in
                // The address given below.
                pages!.assumingMemoryBound(to: Int32.self).pointee = count
                return SQLITE_OK
            }, pages)
    }

    deinit {
        sqlite3_wal_hook(connection.handle, nil, nil)
        pages.deallocate()
    }

    /// To be called after each commit.
    func committed() {
        let count = Int(pages.pointee)
        if count < checkpointedPages {
            checkpointedPages = 0
            hasWarned = false
        }
        if count >= max(Self.pagesBeforeCheckpoint, checkpointedPages + Self.pagesBeforeRetry) { checkpoint() }
    }

    /// To be called when nothing is queued.
    func idle() {
        if Int(pages.pointee) >= checkpointedPages + Self.pagesWhenIdle { checkpoint() }
    }

    private func checkpoint() {
        checkpointedPages = Int(pages.pointee)
        readers.letGo()
        var total: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_PASSIVE, &total, &copied)
        if code == SQLITE_OK, copied == total { readers.letGo() }
        warn(code)
    }

    /// Says once that something keeps the log from starting anew.
    private func warn(_ code: Int32) {
        guard !hasWarned, checkpointedPages > 2 * Self.pagesBeforeCheckpoint else { return }
        hasWarned = true
        let reason =
            code == SQLITE_OK
            ? "another process may hold a read transaction"
            : connection.failure(code, "cannot checkpoint").message
        host.log(.warning, "the write-ahead log has grown to \(checkpointedPages) pages: \(reason)")
    }
}
