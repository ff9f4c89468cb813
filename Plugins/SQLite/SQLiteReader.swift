import CRUDModel
import CRUDPluginKit
import CSQLite
import Synchronization

/// A connection that reads.
///
/// Between the first read and ``endSnapshot()`` it holds a read transaction, which doubles the pace of single reads: a
/// transaction of its own costs each of them the locks and the look at the log. The backend's thread may end it in
/// between (``letGo()``), as no checkpoint gets past a transaction; the next read then begins another.
final class SQLiteReader: StorageReader, Sendable {
    private let session: Mutex<ReadSession?>
    /// The backend wants the read transaction ended; a walk under way does so when it is done, else the next call.
    private let isAskedToLetGo = Atomic(false)
    /// A walk is under way that may take long.
    private let isWalking = Atomic(false)
    /// A walk over more records may take long.
    private static let quickWalk = 10_000
    private let readers: SQLiteReaders

    init(path: String, readers: SQLiteReaders) throws(StorageFailure) {
        session = Mutex(try ReadSession(path: path))
        self.readers = readers
        readers.insert(self)
    }

    func close() {
        readers.remove(self)
        session.withLock { $0 = nil }
    }

    // MARK: Reading

    func read(_ request: borrowing ReadRequest, from collection: SQLiteCollection) throws(StorageFailure) {
        try use { (session) throws(StorageFailure) in
            let statement = try session.statement(request.wantsItems ? .read : .readRevision, collection)
            for position in 0..<request.count {
                defer { statement.reset() }
                try session.check(statement.bind(1, text: request.id(at: position)))
                guard try session.step(statement) else { continue }
                let revision = try storedRevision(statement, collection)
                let item = try request.wantsItems ? storedItem(statement, collection) : emptyBytes
                guard request.emit(position, item: item.bytes, revision: revision.bytes) else { return }
            }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: SQLiteCollection) throws(StorageFailure) {
        isWalking.store(request.limit.map { $0 > Self.quickWalk } ?? true, ordering: .relaxed)
        defer { isWalking.store(false, ordering: .relaxed) }
        try use { (session) throws(StorageFailure) in
            let statement = try session.statement(request.wantsItems ? .scan : .scanRevisions, collection)
            defer { statement.reset() }
            let range = IDRange(after: request.after, prefix: request.prefix)
            try session.bind(range, statement)
            try session.check(statement.bind(3, integer: Int64(request.limit ?? -1)))
            var position = 0
            while try session.step(statement) {
                let id = try storedID(statement, collection)
                let revision = try storedRevision(statement, collection)
                let item = try request.wantsItems ? storedItem(statement, collection) : emptyBytes
                guard request.emit(position, id: id.bytes, item: item.bytes, revision: revision.bytes) else { return }
                position += 1
            }
        }
    }

    func count(
        prefix: UnsafeRawBufferPointer, in collection: SQLiteCollection
    ) throws(StorageFailure) -> UInt64 {
        try use { (session) throws(StorageFailure) in
            // Without a range SQLite counts the entries of whole pages of the index.
            let statement = try session.statement(prefix.isEmpty ? .count : .countRange, collection)
            defer { statement.reset() }
            let range = IDRange(after: emptyBytes, prefix: prefix)
            if !prefix.isEmpty { try session.bind(range, statement) }
            return try session.step(statement) ? UInt64(statement.integer(0)) : 0
        }
    }

    // MARK: The snapshot

    func endSnapshot() {
        session.withLock { $0?.end() }
    }

    /// Ends the read transaction from another thread, between calls: at once, or when the call under way returns.
    ///
    /// It waits for that, which takes no longer than a call, as a mutex that is waited for goes to the waiter next. It
    /// does not wait for a walk without an end.
    func letGo() {
        isAskedToLetGo.store(true, ordering: .relaxed)
        if isWalking.load(ordering: .relaxed) { return }
        session.withLock { session in
            session?.end()
            isAskedToLetGo.store(false, ordering: .relaxed)
        }
    }

    /// Calls `body` with the connection, and meanwhile is not waited for by who wants the read transaction ended.
    func walk<Result>(
        _ body: (inout ReadSession) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        isWalking.store(true, ordering: .relaxed)
        defer { isWalking.store(false, ordering: .relaxed) }
        return try use(body)
    }

    private func use<Result>(
        _ body: (inout ReadSession) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        try session.withLock { (session) throws(StorageFailure) in
            guard session != nil else { throw StorageFailure(.internal, "the reader is closed") }
            letGoIfAsked(&session)
            defer { letGoIfAsked(&session) }
            // Checked above.
            return try body(&session!)
        }
    }

    private func letGoIfAsked(_ session: inout ReadSession?) {
        guard isAskedToLetGo.load(ordering: .relaxed) else { return }
        session?.end()
        isAskedToLetGo.store(false, ordering: .relaxed)
    }
}
