import CPostgreSQL
import CRUDPluginKit
import Glibc

/// A connection to a server, used by one thread at a time, in libpq's pipeline mode
/// (<https://www.postgresql.org/docs/current/libpq-pipeline-mode.html>).
///
/// Statements are sent one after the other, then ``sync(_:)`` and one ``receive(_:)`` for each: that is one round trip.
/// Where that fails in the middle, ``recover()`` makes the connection usable again, or ``isBroken`` says otherwise.
final class Connection {
    private let handle: OpaquePointer
    private let notices = Notices()
    /// Which server it leads to.
    private(set) var identity = ServerIdentity(system: 0, timeline: 0, startTime: 0, process: 0, isReadOnly: false)
    /// Of the ``ChosenServer`` that it was opened for.
    var generation: UInt64 = 0
    /// The server is not there any more, or it is not known what it would reply to.
    private(set) var isBroken = false
    /// What the server has warned of since this was reset; see ``Notices/warning``.
    var warning: ServerError? {
        get { notices.warning }
        set { notices.warning = newValue }
    }

    /// A statement has failed since this was reset because another session has made the same thing.
    var hasCollided = false

    /// What the server has yet to reply to, in order.
    private var inFlight: [Sent] = []
    private var received = 0
    /// A COMMIT is among it: whether the server is asked to stop waiting for its standbys is not ours to decide.
    private var commitIsInFlight = false
    private var statements: [StatementKey: String] = [:]
    private var statementsNamed = 0
    /// Of the names of statements, unlike any other connection's: a pooler may hand over the session of another one.
    private let namePrefix = "crudd_\(String(UInt64.random(in: 0 ... .max), radix: 36))_"
    /// How many milliseconds the server lets a statement take; 0: as it comes, -1: not known.
    private var timeoutMilliseconds: Int64 = 0
    /// How many milliseconds it lets a statement wait for a lock, likewise.
    private var lockMilliseconds: Int64 = 0

    private static let maximumStatements = 1000
    private static let cancellationMilliseconds: Int32 = 1000
    private static let openingMilliseconds: Int64 = 3000

    private enum Sent {
        case preparation(StatementKey)
        case statement
        /// One whose result is ignored.
        case setting
        case sync
    }

    private struct StatementKey: Hashable {
        let statement: CollectionStatement
        let scope: Int
    }

    // MARK: Opening

    init(_ settings: ConnectionSettings, to address: ServerAddress) throws(StorageFailure) {
        let handle = settings.withParameters(of: address) { PQconnectdbParams($0, $1, 1) }
        guard let handle else { throw StorageFailure(.unavailable, "cannot connect: out of memory") }
        self.handle = handle
        guard PQstatus(handle) == CONNECTION_OK, PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1
        else { throw lost("cannot connect") }
        guard let encoding = PQparameterStatus(handle, "server_encoding"), String(cString: encoding) == "UTF8" else {
            throw StorageFailure(.unsupported, "the encoding of the database is not UTF8")
        }
        notices.receive(from: handle)
        let wait = Wait(milliseconds: Self.openingMilliseconds)
        try configure(wait, settings)
        identity = try ServerIdentity.ask(self, wait)
    }

    deinit {
        PQfinish(handle)
    }

    /// Each statement is made for one plan: an index, in its order. The planner does not know how many rows are wanted,
    /// nor that a table which is empty now will grow. A setting that the server does not know is left out.
    private func configure(_ wait: Wait, _ settings: ConnectionSettings) throws(StorageFailure) {
        var sql = ["enable_sort = off", "enable_seqscan = off", "enable_bitmapscan = off", "jit = off"]
        if settings.plansOnce { sql.append("plan_cache_mode = force_generic_plan") }
        // What a frozen daemon has locked is not waited for; other sessions wait longer than that.
        if settings.isShared { sql.append("idle_in_transaction_session_timeout = \(BlockLimits.idleMilliseconds)") }
        for setting in sql {
            try sendSetting("SET \(setting)")
            try sync(wait)
        }
        try finish(wait)
    }

    // MARK: Sending

    /// Sends a statement of a collection, which is prepared when it is sent first.
    func send(
        _ statement: CollectionStatement, _ scope: StatementScope, _ parameters: Parameters
    ) throws(StorageFailure) {
        let key = StatementKey(statement: statement, scope: scope.number)
        let known = statements[key]
        let name = if let known { known } else { try prepare(key, statement.definition(scope)) }
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 1) == 1
        }
        guard isSent else { throw lost("cannot send a statement") }
        inFlight.append(.statement)
        if statement == .commit { commitIsInFlight = true }
    }

    private func prepare(
        _ key: StatementKey, _ definition: StatementDefinition
    ) throws(StorageFailure) -> String {
        if statements.count >= Self.maximumStatements {
            try sendSetting("DEALLOCATE ALL")
            statements.removeAll()
        }
        let name = namePrefix + String(statementsNamed)
        statementsNamed += 1
        let types = definition.parameters.map(\.rawValue)
        guard PQsendPrepare(handle, name, definition.sql, Int32(types.count), types) == 1 else {
            throw lost("cannot prepare a statement")
        }
        inFlight.append(.preparation(key))
        statements[key] = name
        return name
    }

    /// Sends a statement that is not worth preparing.
    func send(
        _ sql: String, _ parameters: Parameters = Parameters(), _ types: [ServerType] = []
    ) throws(StorageFailure) {
        let types = types.map(\.rawValue)
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryParams(handle, sql, Int32(types.count), types, values, lengths, formats, 1) == 1
        }
        guard isSent else { throw lost("cannot send a statement") }
        inFlight.append(.statement)
    }

    private func sendSetting(_ sql: String) throws(StorageFailure) {
        try send(sql)
        inFlight[inFlight.count - 1] = .setting
    }

    /// Has the server end statements that are sent from now on when their timeout has passed.
    ///
    /// - Parameter milliseconds: how long they may take at most.
    func limitStatements(_ wait: Wait, atMost milliseconds: Int64 = .max) throws(StorageFailure) {
        let limit = min(wait.timeoutMilliseconds, milliseconds)
        if limit == timeoutMilliseconds { return }
        try sendSetting("SET statement_timeout = \(limit)")
        timeoutMilliseconds = limit
    }

    /// Has the server end statements that are sent from now on when they wait for a lock for so long.
    func limitLocks(milliseconds: Int64) throws(StorageFailure) {
        if milliseconds == lockMilliseconds { return }
        try sendSetting("SET lock_timeout = \(milliseconds)")
        lockMilliseconds = milliseconds
    }

    /// Gives the commit that is sent next the time that the caller has, where statements have less.
    func extendCommit(_ wait: Wait) throws(StorageFailure) {
        let limit = wait.timeoutMilliseconds
        if timeoutMilliseconds < limit { try sendSetting("SET LOCAL statement_timeout = \(limit)") }
    }

    /// Ends what belongs together: if a statement fails, those up to here are not executed. Sends all that was queued.
    func sync(_ wait: Wait) throws(StorageFailure) {
        guard PQpipelineSync(handle) == 1 else { throw lost("cannot send statements") }
        inFlight.append(.sync)
        while true {
            switch PQflush(handle) {
            case 0: return
            case 1: try awaitServer(wait, writes: true)
            default: throw lost("cannot send statements")
            }
        }
    }

    // MARK: Receiving

    /// The result of the next statement that was sent. Where its preparation has failed it is that result.
    func receive(_ wait: Wait) throws(StorageFailure) -> QueryResult {
        var failed: QueryResult?
        while received < inFlight.count {
            let sent = inFlight[received]
            let result = try nextResult(sent, wait)
            received += 1
            switch sent {
            case .preparation(let key):
                if result.status != PGRES_COMMAND_OK {
                    statements[key] = nil
                    failed = failed ?? result
                }
            case .statement: return failed ?? result
            case .setting, .sync: break
            }
        }
        throw StorageFailure(.internal, "no statement was sent")
    }

    /// Receives what is left up to the sync.
    func finish(_ wait: Wait) throws(StorageFailure) {
        while received < inFlight.count {
            let sent = inFlight[received]
            let result = try nextResult(sent, wait)
            received += 1
            if case .preparation(let key) = sent, result.status != PGRES_COMMAND_OK { statements[key] = nil }
        }
        inFlight.removeAll(keepingCapacity: true)
        received = 0
        commitIsInFlight = false
    }

    private func nextResult(_ sent: Sent, _ wait: Wait) throws(StorageFailure) -> QueryResult {
        guard let handle = try next(wait) else { throw lost("the connection is out of step") }
        let result = QueryResult(handle)
        if PQstatus(self.handle) == CONNECTION_BAD { throw lost("lost the connection") }
        // Nothing ends what stands for a sync.
        if case .sync = sent {} else { while let further = try next(wait) { PQclear(further) } }
        if let error = result.error { note(error) }
        return result
    }

    private func note(_ error: ServerError) {
        if error.endsConnection { isBroken = true }
        if error.isCollision { hasCollided = true }
    }

    private func next(_ wait: Wait) throws(StorageFailure) -> OpaquePointer? {
        while PQisBusy(handle) == 1 { try awaitServer(wait, writes: false) }
        return PQgetResult(handle)
    }

    private func awaitServer(_ wait: Wait, writes: Bool) throws(StorageFailure) {
        var interest = pollfd(fd: PQsocket(handle), events: Int16(POLLIN | (writes ? POLLOUT : 0)), revents: 0)
        while true {
            let count = poll(&interest, 1, wait.slice)
            if count > 0 { break }
            guard count == 0 || errno == EINTR else { throw StorageFailure(errno: errno, "cannot poll a socket") }
            try wait.check()
        }
        if interest.revents & ~Int16(POLLOUT) != 0, PQconsumeInput(handle) == 0 { throw lost("lost the connection") }
    }

    // MARK: Failures

    /// Has the server stop what it does, and makes the connection ready for other statements. One on which a COMMIT
    /// waits is given up instead: if the COMMIT were cancelled the server would apply it without its standbys.
    func recover() {
        if commitIsInFlight { isBroken = true }
        if isBroken { return }
        // What was set in a transaction that is undone is undone, too.
        (timeoutMilliseconds, lockMilliseconds) = (-1, -1)
        do throws(StorageFailure) {
            let wait = Wait(milliseconds: 1000)
            if received < inFlight.count {
                guard cancel() else {
                    isBroken = true
                    return
                }
                if case .sync = inFlight.last {} else { try sync(wait) }
                try finish(wait)
            }
            if PQtransactionStatus(handle) != PQTRANS_IDLE {
                try send("ROLLBACK")
                try sync(wait)
                try finish(wait)
            }
        } catch {
            isBroken = true
        }
    }

    /// - Returns: false where the server does not reply.
    private func cancel() -> Bool { makeCancellation()?.send(atMost: Self.cancellationMilliseconds) ?? true }

    /// What ends a statement that is being executed; any thread may use it.
    func makeCancellation() -> Cancellation? { PQgetCancel(handle).map(Cancellation.init) }

    private func lost(_ action: String) -> StorageFailure {
        isBroken = true
        return StorageFailure(.unavailable, "\(action): \(ending)")
    }

    /// Why the connection has ended: what the server has said, or libpq, without its guesses.
    var ending: String {
        if let error = notices.ending { return error.description }
        let message = String(cString: PQerrorMessage(handle))
        let lines = message.split(whereSeparator: \.isNewline)
        return lines.isEmpty
            ? "the server has closed it" : singleLine(lines.filter { $0.first != "\t" }.joined(separator: "\n"))
    }

    var socket: Int32 { PQsocket(handle) }

    /// Whether it was opened for a server and still leads there.
    func belongs(to server: ChosenServer) -> Bool {
        generation == server.generation && !isBroken && !hasEnded()
    }

    /// Whether the server has said something by itself: that it ends the session, say, which it does before it releases
    /// what that has locked. Only where nothing is in flight.
    func hasNews() -> Bool {
        var interest = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&interest, 1, 0) != 0 || hasEnded()
    }

    /// What other sessions, and not this one, have sent on the channel that this one listens on (`NOTIFY`).
    func takeNotifications() -> [[UInt8]] {
        var taken: [[UInt8]] = []
        while let notification = PQnotifies(handle) {
            defer { PQfreemem(notification) }
            guard notification.pointee.be_pid != PQbackendPID(handle) else { continue }
            taken.append(Array(String(cString: notification.pointee.extra).utf8))
        }
        return taken
    }

    /// Whether the server has closed it. Only where nothing is in flight.
    func hasEnded() -> Bool {
        if PQconsumeInput(handle) == 0 || PQstatus(handle) == CONNECTION_BAD { isBroken = true }
        return isBroken
    }
}

extension Connection {
    /// Runs one statement in a round trip of its own.
    @discardableResult
    func query(
        _ sql: String, _ parameters: Parameters = Parameters(), _ types: [ServerType] = [], _ wait: Wait
    ) throws(StorageFailure) -> QueryResult {
        try send(sql, parameters, types)
        try sync(wait)
        let result = try receive(wait)
        try finish(wait)
        return result
    }

    /// Runs SQL of any number of statements, without parameters.
    ///
    /// - Returns: the result of the last one that was executed.
    func run(script: String, _ wait: Wait) throws(StorageFailure) -> QueryResult {
        guard PQexitPipelineMode(handle) == 1 else { throw lost("cannot leave the pipeline mode") }
        guard PQsendQuery(handle, script) == 1 else { throw lost("cannot send statements") }
        while PQflush(handle) == 1 { try awaitServer(wait, writes: true) }
        var last: QueryResult?
        while let handle = try next(wait) {
            let result = QueryResult(handle)
            if let error = result.error { note(error) }
            if last?.error == nil { last = result }
            if PQstatus(self.handle) == CONNECTION_BAD { throw lost("lost the connection") }
        }
        guard PQenterPipelineMode(handle) == 1, let last else { throw lost("cannot run statements") }
        return last
    }
}

extension Wait {
    /// The same, for what a connection is asked: it ends as well when another server is chosen.
    func on(_ connection: Connection) -> Wait {
        var wait = self
        wait.generation = connection.generation
        return wait
    }
}
