import CRUDPluginKit
import CSQLite
import Glibc

/// Keeps the write-ahead log short.
///
/// A commit appends pages to the log; a checkpoint copies them into the database file; once it has copied all of them
/// and no reader is in the log any more, the next transaction writes the log from its start again. SQLite's own
/// automatic checkpoint never gets that far beside busy readers: it copies no page that is newer than the oldest read
/// transaction, so that some always remain, and the log grows without bound.
///
/// Hence the writer does it, between two of its own transactions, while nothing is added to the log:
/// 1. Readers release their snapshots. Those that they take next reach to the end of the log and keep no page from
///    being copied.
/// 2. A passive checkpoint copies everything, while readers continue.
/// 3. Readers release their snapshots once more. Those that they take next read the database file alone, so the log is
///    free.
///
/// All writes wait for that, 0.1 seconds if it is all of the log. Hence a ``LogCopier`` copies and syncs what the log
/// has before, in rounds of which each has less to do than the last, until little is left.
///
/// Where the disk has not taken what was copied, the log still has all of it, and is copied again from its first page
/// on.
///
/// A reader in a long scan, or a transaction of another process, makes this fail; it is retried whenever the log has
/// grown by another step. The log's file keeps its size when it is written from its start, as syncing bytes written
/// over others is nearly twice as quick as syncing bytes appended; only what exceeded the limit is cut off.
final class WriteAheadLog {
    /// About 40 MiB. Pages are written into the database file once per checkpoint, however often they were written to
    /// the log: with random ids a checkpoint each 1000 pages, SQLite's default, makes one in a hundred writes wait
    /// 7 ms.
    static let pagesBeforeCheckpoint = 10_000
    private static let pagesBeforeRetry = 1_000
    /// The writer copies and syncs as many in some milliseconds.
    private static let pagesAtOnce = 200
    /// What is cut off the log's file once the log is written from its start again.
    static let maximumKeptBytes = 60 << 20
    /// How long the log may stay while nothing is written. Readers look each page up in it first, which costs them up
    /// to half of their rate, and it is read again when the file is opened after a crash.
    private static let pagesWhenIdle = 100

    private let connection: Connection
    private let copier: LogCopier
    private let readers: SQLiteReaders
    private let database: DatabaseRoom
    private let reserve: Reserve
    private let host: Host

    /// Set by SQLite after each commit that has written something.
    // SQLite keeps its address until the connection is closed, which outlives it.
    private let lastCommit = UnsafeMutablePointer<Commit>.allocate(capacity: 1)
    /// The log's pages at the last checkpoint; 0 if it was written from its start since.
    private var checkpointedPages = 0
    private var hasWarned = false
    /// The log's pages at which the writer waits for the round in progress, and copies the rest by itself.
    private var pagesToWaitAt = 0
    /// The disk may lack something that was copied.
    private var mustCopyAgain = false

    private struct Commit {
        /// The length of the log.
        var pages = 0
        /// Whether nobody has looked at it.
        var isNew = false
    }

    init(
        connection: Connection, copier: LogCopier, readers: SQLiteReaders, database: DatabaseRoom, reserve: Reserve,
        host: Host
    ) {
        self.connection = connection
        self.copier = copier
        self.readers = readers
        self.database = database
        self.reserve = reserve
        self.host = host
        lastCommit.initialize(to: Commit())
        // This takes the place of SQLite's automatic checkpoint.
        sqlite3_wal_hook(
            connection.handle,
            { lastCommit, _, _, pages in
                // The address given below.
                lastCommit!.assumingMemoryBound(to: Commit.self).pointee = Commit(pages: Int(pages), isNew: true)
                return SQLITE_OK
            }, lastCommit)
    }

    deinit {
        sqlite3_wal_hook(connection.handle, nil, nil)
        lastCommit.deallocate()
    }

    /// Whether anything was committed since this was called last.
    func takeCommit() -> Bool {
        defer { lastCommit.pointee.isNew = false }
        return lastCommit.pointee.isNew
    }

    /// To be called after each commit.
    func checkpointIfLong() {
        let pages = lastCommit.pointee.pages
        if pages < checkpointedPages {
            checkpointedPages = 0
            hasWarned = false
        }
        guard let marked = copier.markedPages else {
            if pages < max(Self.pagesBeforeCheckpoint, checkpointedPages + Self.pagesBeforeRetry) { return }
            pagesToWaitAt = pages + pages / 2
            begin(at: pages)
            return
        }
        guard copier.advance() || pages >= pagesToWaitAt else { return }
        switch copier.finish() {
        case .copied(let copied) where copied < marked:
            checkpointedPages = pages
            warn(Self.olderState)
        case .copied where pages - marked > Self.pagesAtOnce && pages < pagesToWaitAt:
            begin(at: pages)
        case .copied, nil:
            _ = checkpoint()
        case .failed:
            mustCopyAgain = true
            _ = checkpoint()
        }
    }

    /// Begins a round, or copies everything at once where that is not possible.
    private func begin(at pages: Int) {
        if isWhole(), copier.mark(pages: pages) { return }
        _ = checkpoint()
    }

    /// Whether a checkpoint may begin where the last one has ended.
    private func isWhole() -> Bool {
        guard mustCopyAgain else { return true }
        guard csqlite_set_copied_pages(connection.handle, 0) else { return false }
        mustCopyAgain = false
        // Older snapshots take for copied what was not.
        readers.releaseSnapshots()
        return true
    }

    /// Has readers release their snapshots, for which a checkpoint of another process may wait.
    func releaseSnapshots() { readers.releaseSnapshots() }

    /// To be called when nothing is queued.
    func idle() {
        if lastCommit.pointee.pages >= checkpointedPages + Self.pagesWhenIdle { _ = checkpoint() }
    }

    /// Copies the log into the database file.
    ///
    /// - Returns: whether all of it was copied, so that it will be written from its start again.
    func checkpoint() -> Bool {
        if case .failed = copier.finish() { mustCopyAgain = true }
        checkpointedPages = lastCommit.pointee.pages
        do throws(StorageFailure) {
            do throws(StorageFailure) {
                return try copyPages()
            } catch let error where error.status == .noSpace && reserve.release() {
                // There is room in the file (see `DatabaseRoom`), unless another process has cut it down, or the file
                // system needs room for what is written over.
                return try copyPages()
            }
        } catch {
            warn(error.message)
            return false
        }
    }

    private func copyPages() throws(StorageFailure) -> Bool {
        readers.releaseSnapshots()
        guard isWhole() else {
            warn("another process copies it")
            return false
        }
        var total: Int32 = 0
        var copied: Int32 = 0
        errno = 0
        let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_PASSIVE, &total, &copied)
        guard code == SQLITE_OK else {
            let failure = connection.failure(code, "cannot checkpoint")
            if code != SQLITE_BUSY { mustCopyAgain = true }
            // At once, as another process could complete the checkpoint.
            _ = isWhole()
            throw failure
        }
        guard copied == total else {
            warn(Self.olderState)
            return false
        }
        readers.releaseSnapshots()
        // SQLite has cut it to the pages that are used.
        try database.update()
        return true
    }

    private static let olderState = "a backup, Litestream or another process reads an older state of the database"

    /// Says once that something keeps the log from being written from its start again.
    private func warn(_ reason: String) {
        guard !hasWarned, checkpointedPages > 2 * Self.pagesBeforeCheckpoint else { return }
        hasWarned = true
        host.log(.warning, "the write-ahead log has grown to \(checkpointedPages) pages: \(reason)")
    }
}
