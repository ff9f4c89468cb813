import CRUDPluginKit
import CRUDPluginThreads
import CSQLite
import Glibc
import Synchronization

/// Copies the write-ahead log into the database file on a thread of its own, and has the disk take it, while the writer
/// continues.
///
/// It is a passive checkpoint on a connection of its own, which takes no lock that the writer needs. A ``LogMark``
/// bounds it, and the writer has committed something beyond the mark before it begins. So it never copies all of the
/// log: that, and what SQLite does then, is left to the writer, for whom little remains to be copied and synced.
final class LogCopier {
    /// What has become of a round.
    enum Outcome {
        /// The database file has so many pages of the log, and the disk has them.
        case copied(pages: Int)
        /// The disk may lack what was copied.
        case failed
    }

    private enum State {
        case resting
        /// Waits for a commit beyond the mark.
        case marked(pages: Int)
        case copying(pages: Int, Round)
    }

    private let mark: LogMark
    private let connection: Connection
    private let readers: SQLiteReaders
    /// Whether the disk is to have anything at all.
    private let syncs: Bool
    private var state = State.resting

    init(_ options: SQLiteOptions, readers: SQLiteReaders) throws(StorageFailure) {
        self.readers = readers
        syncs = options.synchronous != .off
        mark = try LogMark(path: options.path)
        connection = try Connection(path: options.path, flags: SQLITE_OPEN_READWRITE, busyTimeout: 0)
        // By default the log is synced before it is copied. (The pragma reads the schema, however large that is.)
        if !syncs { try connection.execute("PRAGMA synchronous = OFF") }
        // SQLite opens the log with the first page that is read.
        _ = try connection.integer("PRAGMA user_version")
    }

    deinit { _ = finish() }

    /// To be called after a commit.
    ///
    /// - Parameter pages: the length of the log.
    /// - Returns: false if there can be no round.
    func mark(pages: Int) -> Bool {
        guard case .resting = state else { return true }
        do throws(StorageFailure) {
            try mark.set()
        } catch {
            return false
        }
        state = .marked(pages: pages)
        return true
    }

    /// How many pages the log had when the round that is in progress was begun; nil: none is.
    var markedPages: Int? {
        switch state {
        case .resting: nil
        case .marked(let pages), .copying(let pages, _): pages
        }
    }

    /// To be called after each commit that follows the mark.
    ///
    /// - Returns: whether the round has ended, so that ``finish()`` will not wait.
    func advance() -> Bool {
        switch state {
        case .resting: return true
        case .copying(_, let round): return round.isDone
        case .marked(let pages):
            guard let round = Round(connection, readers, syncs: syncs) else { return true }
            state = .copying(pages: pages, round)
            return false
        }
    }

    /// Waits for the end of the round in progress.
    ///
    /// - Returns: nil if nothing was copied.
    func finish() -> Outcome? {
        defer {
            mark.clear()
            state = .resting
        }
        guard case .copying(_, let round) = state else { return nil }
        return round.outcome()
    }

    // What the thread has stored is read once it has ended.
    private final class Round: @unchecked Sendable {
        private let connection: Connection
        private let readers: SQLiteReaders
        private let syncs: Bool
        private let hasEnded = Atomic(false)
        private var result = Outcome.failed
        private var thread: pthread_t?

        /// Nil where the system has no thread.
        init?(_ connection: Connection, _ readers: SQLiteReaders, syncs: Bool) {
            self.connection = connection
            self.readers = readers
            self.syncs = syncs
            thread = BackgroundThread.start(named: "checkpoint") { [self] in
                result = copy()
                hasEnded.store(true, ordering: .releasing)
            }
            if thread == nil { return nil }
        }

        var isDone: Bool { hasEnded.load(ordering: .acquiring) }

        func outcome() -> Outcome {
            if let thread = thread.take() { pthread_join(thread, nil) }
            return result
        }

        private func copy() -> Outcome {
            // Older ones would keep pages from being copied.
            readers.releaseSnapshots()
            var copied: Int32 = 0
            let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, &copied)
            // Another process copies it.
            if code == SQLITE_BUSY { return .copied(pages: 0) }
            guard code == SQLITE_OK else { return .failed }
            guard syncs else { return .copied(pages: Int(copied)) }
            // Until the disk has it, transactions that begin from now on read it from the log: what is lost does not
            // get into their caches.
            let isHidden = csqlite_set_copied_pages(connection.handle, 0)
            readers.releaseSnapshots()
            guard csqlite_sync(connection.handle) == SQLITE_OK else {
                // Another process may have kept it from being hidden.
                if csqlite_set_copied_pages(connection.handle, 0) { readers.releaseSnapshots() }
                return .failed
            }
            // The mark has kept the log from being written from its start meanwhile. Where another process copies it at
            // the moment, that shows it.
            if isHidden { _ = csqlite_set_copied_pages(connection.handle, UInt32(clamping: copied)) }
            return .copied(pages: Int(copied))
        }
    }
}
