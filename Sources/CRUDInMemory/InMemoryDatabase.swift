public import CRUDClient
import CRUDModel
import CRUDQuery
import Synchronization

/// Collections in the memory of this process, for an application's unit tests.
///
/// ```swift
/// let database = InMemoryDatabase()
/// let users = database.repository("users", of: User.self)
/// let orders = database.repository("orders", of: Order.self)
/// ```
///
/// It stands in for a `CRUDClient`, as a `RecordDatabase`: repositories with one name have the same records, and a
/// transaction may cover several collections. ``inject(_:times:in:)`` makes calls fail as those of a daemon may.
public final class InMemoryDatabase: RecordDatabase {
    private let tables = Mutex(Tables())
    private let clock: DatabaseClock
    private let signal = ChangeSignal()
    let faults = FaultList()

    /// A database without records.
    ///
    /// - Parameter clock: determines when records expire, and how long a request for changes waits. A test passes a
    ///   clock that it moves itself, so that it need not wait.
    public init(clock: any Clock<Duration> = ContinuousClock()) {
        self.clock = DatabaseClock(clock)
    }

    /// The records of the collection `name`.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal. Every method of the
    ///   repository throws `CRUDError.Code.invalidParams` for another.
    public func repository(_ name: String) -> InMemoryRepository {
        InMemoryRepository(database: self, collection: name)
    }

    // MARK: Reading

    /// - Throws: `record_not_found`.
    func record(_ id: String, in collection: String) throws -> Record {
        guard let record = try records([id], in: collection, "id").first else {
            throw CRUDError.recordNotFound(id.utf8, in: collection.utf8)
        }
        return record
    }

    /// The records that are there, each once, in the order of `ids`.
    ///
    /// - Parameter member: what the protocol calls the parameter.
    func records(_ ids: [String], in collection: String, _ member: String = "ids") throws -> [Record] {
        try RequestCheck.collection(collection)
        for id in ids { try RequestCheck.id(id, member) }
        var seen: Set<[UInt8]> = []
        return access { tables in
            ids.compactMap { id in
                let id = Array(id.utf8)
                return seen.insert(id).inserted ? tables[collection][id] : nil
            }
        }
    }

    /// The result of `record.query`, as JSON text.
    func page(_ query: RecordQuery, in collection: String) throws -> [UInt8] {
        try RequestCheck.collection(collection)
        let name = Array(collection.utf8)
        let execution = try QueryExecution(
            Query(query, in: name), in: QueryTarget(name: name), maximumBytes: DefaultLimits.frameBytes,
            timeout: DefaultLimits.requestTimeout)
        let table = snapshot(collection)
        try RequestCheck.complete { isOver in try execution.advance(table, isAbandoned: isOver) }
        return execution.result
    }

    func count(_ selection: RecordSelection, in collection: String) throws -> Int {
        try RequestCheck.collection(collection)
        let execution = try CountExecution(Query(selection), in: QueryTarget(name: []))
        let table = snapshot(collection)
        try RequestCheck.complete { isOver in try execution.advance(table, isAbandoned: isOver) }
        return execution.count
    }

    private func snapshot(_ collection: String) -> TableSnapshot {
        access { $0[collection].snapshot() }
    }

    // MARK: Writing

    /// Changes one record, once its names, its expiry and the item or patch that it is given have been checked.
    func write<Result>(
        _ id: String, in collection: String, _ item: EncodedItem? = nil, _ expiry: Expiry? = nil,
        _ change: (inout Tables) throws(CRUDError) -> Result
    ) throws -> Result {
        try RequestCheck.collection(collection)
        try RequestCheck.id(id)
        if let item { try RequestCheck.item(item) }
        try RequestCheck.expiry(expiry)
        return try stoppable { try access(change) }
    }

    func delete(_ selection: RecordSelection, in collection: String) throws -> Int {
        try RequestCheck.collection(collection)
        if selection != .all {
            try BulkDeletionRule.check(filter: selection.filter, prefix: selection.prefix.map { Array($0.utf8) })
        }
        let execution = try MatchExecution(Query(selection), in: QueryTarget(name: []))
        return try access { tables in
            let table = tables[collection].snapshot()
            // Where the search is stopped nothing has been deleted.
            var found: [[UInt8]] = []
            try RequestCheck.complete { isOver in
                let isLast = try execution.find(table, isAbandoned: isOver)
                found += execution.found.map(\.id)
                return isLast
            }
            for id in found { tables.remove(id, collection) }
            return found.count
        }
    }

    func batch(_ operations: [RecordOperation], in collection: String) throws -> [Result<RecordOutcome, CRUDError>] {
        try RequestCheck.operations(operations, in: collection)
        return access { tables in
            operations.map { operation in
                Result { () throws(CRUDError) in try tables.execute(operation, in: collection) }
            }
        }
    }

    func transaction(_ operations: [RecordOperation], in collection: String) throws -> [RecordOutcome] {
        try RequestCheck.operations(operations, in: collection)
        return try stoppable {
            try access { tables in try transaction(operations, in: collection, &tables) }
        }
    }

    private func transaction(
        _ operations: [RecordOperation], in collection: String, _ tables: inout Tables
    ) throws -> [RecordOutcome] {
        var changed = tables
        let outcomes = try operations.enumerated().map { index, operation in
            do throws(CRUDError) {
                return try changed.execute(operation, in: collection)
            } catch {
                throw error.at(index)
            }
        }
        tables = changed
        return outcomes
    }

    /// Has a task whose calls are over told so, where that has stopped `body`.
    private func stoppable<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as CRUDError where error.code == .timedOut {
            try RequestCheck.task()
            throw error
        }
    }

    // MARK: Time and changes

    /// Waits so long by the database's clock, but not past the deadline of the task's calls.
    func sleep(for duration: Duration) async throws {
        try await clock.wait(
            until: clock.now() + (duration.wholeMilliseconds ?? 0), deadline: CRUDClient.deadline)
    }

    /// Calls `body` with the records as they are now: those that have expired are gone.
    func access<Value, Failure: Error>(_ body: (inout Tables) throws(Failure) -> Value) throws(Failure) -> Value {
        var sequence: UInt64 = 0
        defer { signal.send(sequence) }
        return try tables.withLock { tables throws(Failure) in
            defer { sequence = tables.sequence }
            tables.advance(to: clock.now())
            return try body(&tables)
        }
    }

    /// Reads a page of changes; waits for the first one, or until the query's time is over.
    func changes(_ query: ChangeQuery, in collection: String) async throws -> ChangePage {
        try RequestCheck.collection(collection)
        try RequestCheck.wait(query.wait)
        var search = try ChangeSearch(query, in: collection)
        let end = clock.now() + (query.wait.wholeMilliseconds ?? 0)
        while true {
            let found = try access { tables in
                (page: try search.page(tables), sequence: tables.sequence, expiry: tables[collection].earliestExpiry)
            }
            guard found.page.changes.isEmpty, clock.now() < end else { return found.page }
            try await clock.race(until: min(end, found.expiry ?? end), deadline: CRUDClient.deadline) { [signal] in
                await signal.wait(beyond: found.sequence)
            }
            try RequestCheck.task()
        }
    }
}
