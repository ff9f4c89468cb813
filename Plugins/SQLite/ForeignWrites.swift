import CRUDPluginKit
import CSQLite
import Synchronization

/// Tells when another process has written to the file.
///
/// SQLite counts commits in memory that all processes share. This compares that number with what it must be by our own
/// commits: before the writer's first statement, while it holds the lock that keeps others from writing, it must be
/// what it was after our last commit, and after a commit it must be one more. Any thread may ask.
// The connection is only asked for the counter, on the backend's thread.
final class ForeignWrites: @unchecked Sendable {
    // What is at the counter's address is read atomically. It is SQLite's and valid while the connection lives.
    private struct State: @unchecked Sendable {
        /// Nil until this has started, and where there is no counter.
        var counter: UnsafePointer<UInt32>?
        /// The commits when we looked last.
        var commits: UInt32 = 0
        /// Our own transaction is open or just ended: it may have added one.
        var isWriting = false
        var version: UInt64 = 1

        mutating func compare(with expected: UInt32) {
            guard let counter else { return }
            let found = csqlite_shared_value(counter)
            if found != expected { version += 1 }
            commits = found
        }
    }

    /// Keeps the counter at its address.
    private let connection: Connection
    private let state = Mutex(State())

    init(connection: Connection) {
        self.connection = connection
    }

    /// To be called between transactions, and not before the file was read.
    func start() {
        let address = UInt(bitPattern: csqlite_commit_counter(connection.handle))
        state.withLock { state in
            state.counter = UnsafePointer(bitPattern: address)
            state.commits = state.counter.map { csqlite_shared_value($0) } ?? 0
        }
    }

    /// Where other processes find the counter; nil where there is none.
    var counter: CommitCounter? {
        guard state.withLock({ $0.counter != nil }), let path = sqlite3_db_filename(connection.handle, "main")
        else { return nil }
        return CommitCounter(
            path: String(cString: path) + "-shm", offset: UInt64(csqlite_commit_counter_offset))
    }

    /// A number that differs from the last one if another process has committed since; 0: that cannot be told.
    func version() -> UInt64 {
        state.withLock { state in
            if !state.isWriting { state.compare(with: state.commits) }
            return state.counter == nil ? 0 : state.version
        }
    }

    /// To be called when the writer holds the lock.
    func began() {
        state.withLock { state in
            state.compare(with: state.commits)
            state.isWriting = true
        }
    }

    /// To be called when the writer's transaction has ended.
    ///
    /// - Parameter hasWritten: whether it has committed changes.
    func ended(hasWritten: Bool) {
        state.withLock { state in
            state.compare(with: state.commits &+ (hasWritten ? 1 : 0))
            state.isWriting = false
        }
    }
}
