import CRUDPluginKit
import Glibc
import Synchronization

/// A connection that reads. It always sees the latest committed state, and connects again by itself.
final class PostgreSQLReader: StorageReader {
    private let settings: ConnectionSettings
    private let availability: Availability
    private let commits: CommitInProgress
    private let host: Host
    private var connection: Connection?
    /// Whether records may be locked for a write.
    private var hasLocked = false
    /// What locks records that other daemons write as well; nil: there are none.
    private let writer: Writer?

    /// How often a statement is executed whose connection is lost, or whose server is in doubt by then.
    private static let maximumAttempts = 3
    private static let pauseMilliseconds: Int32 = 1
    private static let historyPauseMilliseconds: Int32 = 2
    /// How long changes are waited for that a transaction in progress holds up, unless it did so the last time.
    private static let longestDelay: Int64 = 200_000_000

    /// - Parameter writer: what locks records, where other daemons write as well; nil: none does.
    init(
        _ settings: ConnectionSettings, _ availability: Availability, _ commits: CommitInProgress, _ host: Host,
        _ writer: Writer?
    ) {
        self.settings = settings
        self.availability = availability
        self.commits = commits
        self.host = host
        self.writer = writer
    }

    func close() {
        connection = nil
    }

    /// No other daemon writes as long as this one owns the schema.
    func dataVersion() -> UInt64 {
        writer == nil ? availability.version : 0
    }

    /// Releases the records that were locked as they were about to be written, and have not been.
    func endSnapshot() {
        guard hasLocked else { return }
        hasLocked = false
        writer?.endHold()
    }

    // MARK: Reading

    func read(_ request: borrowing ReadRequest, from collection: PostgreSQLCollection) throws(StorageFailure) {
        guard request.isToWrite, let locked = writer?.lock(request, of: collection) else {
            return try readUnlocked(request, from: collection)
        }
        hasLocked = true
        for (position, result) in locked.enumerated() where result.rowCount > 0 {
            guard emit(StoredRecord(result, 0), position, request) else { return }
        }
    }

    private func readUnlocked(
        _ request: borrowing ReadRequest, from collection: PostgreSQLCollection
    ) throws(StorageFailure) {
        // As many as a result may hold of the longest items.
        let page = 100
        for start in stride(from: 0, to: request.count, by: page) {
            let positions = start..<min(start + page, request.count)
            var parameters = Parameters()
            if positions.count == 1 {
                parameters.add(request.id(at: start))
            } else {
                parameters.add(array: positions.count) { request.id(at: start + $0) }
            }
            let statement = CollectionStatement.read(isSingle: positions.count == 1, withItems: request.wantsItems)
            let result = try query(statement, collection.scope, parameters, request.call) {
                .records(positions.map { RecordKey(collection, request.id(at: $0)) })
            }
            guard emit(result, positions, request) else { return }
        }
    }

    /// Returns whether the host wants more.
    private func emit(_ result: QueryResult, _ positions: Range<Int>, _ request: borrowing ReadRequest) -> Bool {
        if positions.count == 1 {
            if result.rowCount == 0 { return true }
            return emit(StoredRecord(result, 0), positions.lowerBound, request)
        }
        // Rows come in the server's order, one for an id that is asked for twice.
        var rows: [[UInt8]: Int] = [:]
        for row in 0..<result.rowCount { rows[Array(result.bytes(row, 0))] = row }
        for position in positions {
            guard let row = rows[Array(request.id(at: position))] else { continue }
            guard emit(StoredRecord(result, row), position, request) else { return false }
        }
        return true
    }

    private func emit(_ record: StoredRecord, _ position: Int, _ request: borrowing ReadRequest) -> Bool {
        let (revision, item) = record.content
        return request.emit(
            position, item: item.bytes, revision: revision.bytes, expiresAt: record.expiresAt,
            sequence: record.sequence)
    }

    func scan(_ request: borrowing ScanRequest, of collection: PostgreSQLCollection) throws(StorageFailure) {
        var bounds = try ScanBounds(request, of: collection)
        var rest = request.limit ?? .max
        var lastSequence: UInt64 = 0
        while rest > 0 {
            if request.isInterrupted { throw .interrupted }
            let size = min(rest, pageSize(of: collection, withItems: request.wantsItems))
            var parameters = bounds.parameters
            parameters.add(Int64(size))
            let page = try query(.scan(bounds.scan), bounds.scope, parameters, request.call) { .range(of: collection) }
            var bytes = 0
            for row in 0..<page.rowCount {
                let record = StoredRecord(page, row)
                guard let id = record.id else {
                    collection.reportInvalidID(to: host)
                    continue
                }
                if bounds.scan.order == .sequence {
                    guard record.sequence != lastSequence else {
                        collection.noteCopy(id)
                        continue
                    }
                    lastSequence = record.sequence
                }
                if bounds.scan.order == .sequence, record.isRemoval {
                    guard request.emitRemoval(id: id.bytes, sequence: record.sequence) else { return }
                    if rest != .max { rest -= 1 }
                    continue
                }
                let (revision, item) = record.content
                bytes += item.count + 100
                let isWanted = request.emit(
                    id: id.bytes, item: item.bytes, revision: revision.bytes, expiresAt: record.expiresAt,
                    sequence: record.sequence)
                guard isWanted else { return }
                // One that has expired does not count.
                if !request.call.hasExpired(record.expiresAt), rest != .max { rest -= 1 }
            }
            if request.wantsItems, page.rowCount > 0 {
                collection.averageBytes.store(bytes / page.rowCount, ordering: .relaxed)
            }
            if page.rowCount < size { return }
            bounds.resume(after: page.rowCount - 1, of: page)
        }
    }

    /// How many records make about a mebibyte, as far as is known.
    private func pageSize(of collection: PostgreSQLCollection, withItems: Bool) -> Int {
        guard withItems else { return 2000 }
        let average = collection.averageBytes.load(ordering: .relaxed)
        return average == 0 ? 16 : max(1, min(2000, (1 << 20) / average))
    }

    /// See ``TransactionNumber``.
    func readHistory(of collection: PostgreSQLCollection, _ call: CallContext) throws(StorageFailure) -> History {
        let layout = collection.layout
        guard layout.keepsSequences, collection.scope.histories != nil else {
            throw StorageFailure(.unsupported, "the changes of table \(collection.tableName) are not numbered there")
        }
        guard layout.hasSequenceIndexes else { throw ScanBounds.missingSequences(collection) }
        var (history, last) = try askHistory(of: collection, call)
        // Transactions with lower numbers end within milliseconds, as a rule: what has been acknowledged is shown then.
        let limit = min(call.deadline ?? .max, Clock.monotonic + Self.longestDelay)
        let acknowledged = last
        while history.next <= acknowledged, history.next != collection.delayedNext.load(ordering: .relaxed) {
            if call.isInterrupted { throw .interrupted }
            if Clock.monotonic >= limit {
                collection.delayedNext.store(history.next, ordering: .relaxed)
                break
            }
            poll(nil, 0, Self.historyPauseMilliseconds)
            (history, last) = try askHistory(of: collection, call)
        }
        return history
    }

    /// - Returns: the history, and the highest number of a change.
    private func askHistory(
        of collection: PostgreSQLCollection, _ call: CallContext
    ) throws(StorageFailure) -> (history: History, last: UInt64) {
        var parameters = Parameters()
        parameters.add(collection.number)
        let result = try query(.history, collection.scope, parameters, call) { .range(of: collection) }
        guard result.rowCount == 1, let server = connection?.identity else {
            throw StorageFailure(.unavailable, "table \(collection.tableName) has no history any more")
        }
        let history = History(
            identity: server.historyIdentity(UInt64(clamping: result.integer(0, 0))),
            forgotten: UInt64(clamping: result.integer(0, 1)), end: UInt64(clamping: result.integer(0, 2)),
            next: UInt64(clamping: result.integer(0, 3)))
        return (history, UInt64(clamping: result.integer(0, 4)))
    }

    func count(
        _ request: borrowing CountRequest, in collection: PostgreSQLCollection
    ) throws(StorageFailure) -> UInt64 {
        let bounds = try ScanBounds(request.range, of: collection)
        var expired = try countExpired(bounds, request, in: collection)
        while true {
            var parameters = bounds.parameters
            let limit = request.limit.map { Int64(clamping: $0) } ?? .max
            let (sum, overflows) = limit.addingReportingOverflow(expired)
            parameters.add(overflows ? .max : sum)
            let result = try query(.count(bounds.scan), bounds.scope, parameters, request.call) {
                .range(of: collection)
            }
            let all = result.integer(0, 0)
            if expired == 0 { return UInt64(clamping: all) }
            // Those that had expired at that time can only become fewer: while as many are left none has been removed.
            let left = try countExpired(bounds, request, in: collection)
            if left == expired { return UInt64(clamping: all - expired) }
            expired = left
        }
    }

    private func countExpired(
        _ bounds: ScanBounds, _ request: borrowing CountRequest, in collection: PostgreSQLCollection
    ) throws(StorageFailure) -> Int64 {
        var parameters = bounds.parameters
        parameters.add(request.now)
        let result = try query(.countExpired(bounds.scan), bounds.scope, parameters, request.call) {
            .range(of: collection)
        }
        return result.integer(0, 0)
    }

    // MARK: The connection

    /// Runs a statement. What a server has returned about which there is doubt by then is not used: the statement is
    /// executed again when that has been answered, as reading changes nothing. Nor is what it may show of a commit
    /// before the outcome of that is known.
    ///
    /// - Parameter question: what the statement asks for.
    private func query(
        _ statement: CollectionStatement, _ scope: StatementScope, _ parameters: Parameters, _ call: CallContext,
        _ question: () -> CommitInProgress.Question
    ) throws(StorageFailure) -> QueryResult {
        var attempts = 0
        while true {
            attempts += 1
            let connection = try connected()
            var failure = StorageFailure(.unavailable, "another server has been chosen meanwhile")
            do throws(StorageFailure) {
                let wait = Wait(call, availability, isInterruptible: true).on(connection)
                let result = try execute(statement, scope, parameters, connection, wait)
                if let commit = commits.number(shownBy: result, to: question) {
                    while !commits.isOver(commit) {
                        poll(nil, 0, Self.pauseMilliseconds)
                        try wait.check()
                    }
                }
                if availability.isCertain(connection.generation) { return result }
            } catch {
                connection.recover()
                guard connection.isBroken else { throw error }
                self.connection = nil
                availability.doubt()
                failure = error
            }
            if attempts == Self.maximumAttempts { throw failure }
        }
    }

    private func connected() throws(StorageFailure) -> Connection {
        if let connection, availability.isCertain(connection.generation) { return connection }
        let server = try availability.server()
        if let connection, connection.belongs(to: server) { return connection }
        self.connection = nil
        let connection = try Connection(settings, to: server, availability)
        self.connection = connection
        return connection
    }

    private func execute(
        _ statement: CollectionStatement, _ scope: StatementScope, _ parameters: Parameters,
        _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> QueryResult {
        try connection.limitStatements(wait)
        try connection.send(statement, scope, parameters)
        try connection.sync(wait)
        let result = try connection.receive(wait)
        try connection.finish(wait)
        return try result.check("read")
    }
}
