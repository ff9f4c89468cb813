import CRUDPluginKit
import CSQLite
import Synchronization

/// A connection that reads.
///
/// Between the first read and ``endSnapshot()`` it holds a read transaction, which doubles the rate of single reads: a
/// transaction of its own costs each of them the locks and the look at the log. The backend's thread may end it in
/// between (``releaseSnapshot()``), as no checkpoint gets past a transaction; the next read then begins another.
final class SQLiteReader: StorageReader, Sendable {
    private let session: Mutex<ReadSession?>
    /// The backend wants the read transaction ended; a scan in progress does so when it is done, else the next call.
    private let isAskedToRelease = Atomic(false)
    /// A call is in progress that may take long.
    private let isScanning = Atomic(false)
    /// A scan of more records may take long.
    private static let quickScan = 10_000
    private let readers: SQLiteReaders
    private let foreignWrites: ForeignWrites
    private let host: Host

    init(
        _ options: SQLiteOptions, readers: SQLiteReaders, foreignWrites: ForeignWrites, host: Host
    ) throws(StorageFailure) {
        session = Mutex(try ReadSession(options))
        self.host = host
        self.readers = readers
        self.foreignWrites = foreignWrites
        readers.insert(self)
    }

    func close() {
        readers.remove(self)
        session.withLock { $0 = nil }
    }

    // MARK: Reading

    func read(_ request: borrowing ReadRequest, from collection: SQLiteCollection) throws(StorageFailure) {
        try use(request.call) { (session) throws(StorageFailure) in
            let statement = try session.statement(.read(withItem: request.wantsItems), collection.scope)
            for position in 0..<request.count {
                defer { statement.reset() }
                try session.check(statement.bind(1, text: request.id(at: position)))
                guard try session.step(statement) else { continue }
                let (revision, _, item) = statement.storedContent
                let isWanted = request.emit(
                    position, item: item.bytes, revision: revision.bytes, expiresAt: statement.storedExpiry,
                    sequence: statement.storedSequence)
                guard isWanted else { return }
            }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: SQLiteCollection) throws(StorageFailure) {
        isScanning.store(request.limit.map { $0 > Self.quickScan } ?? true, ordering: .relaxed)
        defer { isScanning.store(false, ordering: .relaxed) }
        try use(request.call) { (session) throws(StorageFailure) in
            let bounds = try ScanBounds(request, of: collection)
            let statement = try session.statement(
                .scan(bounds.order, isReversed: request.isReversed, withItems: request.wantsItems), bounds.scope)
            defer { statement.reset() }
            try bounds.bind(statement, session, resuming: request)
            while try session.step(statement) {
                guard let id = statement.storedID else {
                    collection.reportInvalidID(to: host)
                    continue
                }
                if bounds.order == .sequence, statement.isRemoval {
                    guard request.emitRemoval(id: id.bytes, sequence: statement.storedSequence) else { return }
                    continue
                }
                let (revision, _, item) = statement.storedContent
                let isWanted = request.emit(
                    id: id.bytes, item: item.bytes, revision: revision.bytes, expiresAt: statement.storedExpiry,
                    sequence: statement.storedSequence,
                    position: bounds.order == .rowID ? statement.storedPosition : 0)
                guard isWanted else { return }
            }
        }
    }

    /// Counts what is there and subtracts what has expired, as either can be told from an index alone.
    func count(_ request: borrowing CountRequest, in collection: SQLiteCollection) throws(StorageFailure) -> UInt64 {
        isScanning.store(true, ordering: .relaxed)
        defer { isScanning.store(false, ordering: .relaxed) }
        return try use(request.call) { (session) throws(StorageFailure) in
            let bounds = try ScanBounds(request.range, of: collection)
            let expired = try session.statement(.countExpired(bounds.order), bounds.scope)
            try bounds.bind(expired, session)
            try session.check(expired.bind(3, integer: request.now))
            let expiredCount = try session.integer(expired)
            if bounds.isUnbounded {
                // Without a range SQLite counts the entries of whole pages of the index.
                let all = try session.statement(.countAll, bounds.scope)
                return UInt64(clamping: try session.integer(all) - expiredCount)
            }
            let all = try session.statement(.count(bounds.order, isLimited: request.limit != nil), bounds.scope)
            try bounds.bind(all, session)
            if let limit = request.limit {
                let (sum, overflows) = Int64(clamping: limit).addingReportingOverflow(expiredCount)
                try session.check(all.bind(3, integer: overflows ? .max : sum))
            }
            return UInt64(clamping: try session.integer(all) - expiredCount)
        }
    }

    func dataVersion() -> UInt64 {
        foreignWrites.version()
    }

    // MARK: The snapshot

    func endSnapshot() {
        session.withLock { $0?.end() }
    }

    /// Ends the read transaction from another thread, between calls: at once, or when the call in progress returns.
    ///
    /// It waits for that, which takes no longer than a call, as a mutex that is waited for goes to the waiter next. It
    /// does not wait for a scan or count.
    func releaseSnapshot() {
        isAskedToRelease.store(true, ordering: .relaxed)
        if isScanning.load(ordering: .relaxed) { return }
        session.withLock { session in
            session?.end()
            isAskedToRelease.store(false, ordering: .relaxed)
        }
    }

    private func use<Result>(
        _ call: CallContext, _ body: (inout ReadSession) throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        try session.withLock { (session) throws(StorageFailure) in
            guard session != nil else { throw StorageFailure(.internal, "the reader is closed") }
            releaseIfAsked(&session)
            session?.call = call
            defer {
                session?.call = nil
                releaseIfAsked(&session)
            }
            // Checked above.
            return try body(&session!)
        }
    }

    private func releaseIfAsked(_ session: inout ReadSession?) {
        guard isAskedToRelease.load(ordering: .relaxed) else { return }
        session?.end()
        isAskedToRelease.store(false, ordering: .relaxed)
    }
}
