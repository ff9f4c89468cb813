import CRUDPluginKit
import Glibc
import Synchronization

/// A thread with a connection of its own that tells the host how far the feeds of changes can be read which several
/// daemons write (``TransactionNumber``).
///
/// Each daemon notifies the others of the collections that it has changed (`NOTIFY`), in a transaction of its own after
/// that of the change: one that notifies keeps all others that do waiting while it is committed. Where a notification
/// does not come, as its daemon was killed in between, say, or as there is a pooler, looking from time to time finds
/// the same. A feed that a transaction in progress holds up is looked at until it has ended.
// `connection` and what follows it are the thread's alone.
final class FeedWatcher: @unchecked Sendable {
    private struct Entry {
        let collection: PostgreSQLCollection
        /// Whether the host has a feed of it.
        var hasFeed: Bool
        /// Up to where it could be read when the host was told last.
        var end: UInt64 = 0
    }

    private struct State {
        /// The open collections by their names.
        var entries: [[UInt8]: Entry] = [:]
        /// Those that this daemon has changed since it has told the others.
        var changed: Set<[UInt8]> = []
    }

    private let settings: ConnectionSettings
    private let schema: Schema
    private let availability: Availability
    private let host: Host
    private let state = Mutex(State())
    private let thread = WorkerThread(named: "feeds")

    private var connection: Connection?
    /// The collections whose feeds are to be looked at.
    private var due: Set<[UInt8]> = []
    /// Those whose indexes are being made, by which they are looked at, and when that is tried again.
    private var unready: Set<[UInt8]> = []
    private var nextAttempt: Int64 = 0
    /// When all are, by ``Clock/monotonic``.
    private var nextRound: Int64 = 0
    /// The lowest number that a change may still get.
    private var bound: Int64 = 0
    /// Since when a transaction in progress holds feeds up; nil: none does.
    private var delayedSince: Int64?
    private var isDelayReported = false

    /// The least time from one look to the next, so that what comes one after the other is looked at together.
    private static let pauseMilliseconds: Int32 = 20
    private static let delayMilliseconds: Int32 = 50
    private static let failurePauseMilliseconds: Int32 = 200
    private static let replyMilliseconds: Int64 = 10_000
    /// From one look at all feeds to the next: at least this, and so much for each.
    private static let roundInterval: Int64 = 5_000_000_000
    private static let roundIntervalOfEach: Int64 = 5_000_000
    /// From one look to the next at a collection whose indexes are being made.
    private static let indexPause: Int64 = 500_000_000
    /// How long feeds are held up until the administrator is told.
    private static let longDelay: Int64 = 5_000_000_000

    init(_ settings: ConnectionSettings, _ schema: Schema, _ availability: Availability, _ host: Host) {
        self.settings = settings
        self.schema = schema
        self.availability = availability
        self.host = host
    }

    /// A collection has been opened.
    func open(_ collection: PostgreSQLCollection, hasFeed: Bool) {
        state.withLock { $0.entries[collection.name] = Entry(collection: collection, hasFeed: hasFeed) }
        wake()
    }

    private func wake() { thread.wake { self.run() } }

    /// A collection is to be dropped.
    func forget(_ collection: PostgreSQLCollection) {
        state.withLock { $0.entries[collection.name] = nil }
    }

    /// Changes of a collection have been committed here.
    func changed(_ collection: PostgreSQLCollection) {
        guard collection.layout.keepsSequences else { return }
        if state.withLock({ $0.changed.insert(collection.name).inserted }) { wake() }
    }

    func stop() {
        thread.stop()
        connection = nil
    }

    // MARK: The thread

    private func run() {
        while !thread.hasToStop {
            do throws(StorageFailure) {
                try look(on: try listening())
            } catch {
                if let connection {
                    connection.recover()
                    if connection.isBroken { self.connection = nil }
                }
                nextRound = 0
                poll(nil, 0, Self.failurePauseMilliseconds)
            }
        }
    }

    /// The connection, on which notifications come.
    private func listening() throws(StorageFailure) -> Connection {
        let server = try availability.server()
        if let connection, connection.belongs(to: server) { return connection }
        connection = nil
        nextRound = 0
        // Another server may count from lower numbers.
        bound = 0
        state.withLock { state in for name in state.entries.keys { state.entries[name]?.end = 0 } }
        let connection = try Connection(settings, to: server, availability)
        // What notifies has nothing that could be lost: it waits for no disk and no standby, where writers do.
        _ = try connection.query("SET synchronous_commit TO off", Parameters(), [], wait(connection))
        // A server that cannot do it, or a pooler, is looked at from time to time.
        _ = try connection.query("LISTEN \(PostgreSQLName.quoted(schema.name))", Parameters(), [], wait(connection))
        self.connection = connection
        return connection
    }

    private func wait(_ connection: Connection) -> Wait {
        Wait(availability) { [limit = Clock.monotonic + Self.replyMilliseconds * 1_000_000] in
            self.thread.hasToStop || Clock.monotonic >= limit
        }.on(connection)
    }

    /// Tells the others what has been changed here, and the host what can be read; waits for more then.
    private func look(on connection: Connection) throws(StorageFailure) {
        let changed = state.withLock { state in
            defer { state.changed.removeAll() }
            return state.changed
        }
        if !changed.isEmpty {
            // Should that fail, all are looked at.
            try notify(changed, connection)
            due.formUnion(changed)
        }
        if Clock.monotonic >= nextRound {
            let names = state.withLock { Array($0.entries.keys) }
            due.formUnion(names)
            nextRound = Clock.monotonic + max(Self.roundInterval, Int64(names.count) * Self.roundIntervalOfEach)
        }
        if !unready.isEmpty, Clock.monotonic >= nextAttempt {
            due.formUnion(unready)
            unready = []
        }
        if !due.isEmpty {
            let next = bound
            due = try report(due, connection)
            // What has advanced is not held up, and what has been named has ended.
            if due.isEmpty || bound != next { endDelay() } else { try noteDelay(connection) }
            poll(nil, 0, Self.pauseMilliseconds)
        }
        takeNotifications(connection)
        guard due.isEmpty || delayedSince != nil else { return }
        let end = unready.isEmpty ? nextRound : min(nextRound, nextAttempt)
        let left = Int32(clamping: max(end - Clock.monotonic, 0) / 1_000_000 + 1)
        thread.rest(due.isEmpty ? left : min(left, Self.delayMilliseconds), socket: connection.socket)
        takeNotifications(connection)
    }

    private func notify(_ names: Set<[UInt8]>, _ connection: Connection) throws(StorageFailure) {
        let wait = wait(connection)
        for name in names {
            var parameters = Parameters()
            parameters.add(schema.name)
            parameters.add(copying: name)
            try connection.send("SELECT pg_notify($1, $2)", parameters, [.text, .text])
        }
        try connection.sync(wait)
        // A server that cannot do it is looked at from time to time.
        for _ in names { _ = try connection.receive(wait) }
        try connection.finish(wait)
    }

    private func takeNotifications(_ connection: Connection) {
        if connection.hasEnded() { return }
        let names = Set(connection.takeNotifications())
        let known = state.withLock { state in names.filter { state.entries[$0] != nil } }
        due.formUnion(known)
        // A request may wait for one that was not there.
        for name in names.subtracting(known) { host.changed(name) }
    }

    // MARK: Feeds

    /// Tells the host how far the feeds of collections can be read.
    ///
    /// - Returns: those in which changes are held up.
    private func report(_ names: Set<[UInt8]>, _ connection: Connection) throws(StorageFailure) -> Set<[UInt8]> {
        let entries = state.withLock { state in
            names.compactMap { name in state.entries[name].flatMap { $0.hasFeed ? (name, $0.collection) : nil } }
        }
        let ready = entries.filter { $0.1.layout.hasSequenceIndexes }
        if ready.count < entries.count {
            unready.formUnion(entries.lazy.filter { !$0.1.layout.hasSequenceIndexes }.map(\.0))
            nextAttempt = Clock.monotonic + Self.indexPause
        }
        if ready.isEmpty { return [] }
        var late: Set<[UInt8]> = []
        let wait = wait(connection)
        for (_, collection) in ready {
            var parameters = Parameters()
            parameters.add(collection.number)
            try connection.send(.history, collection.scope, parameters)
            try connection.sync(wait)
        }
        for (name, _) in ready {
            let result = try connection.receive(wait)
            // Its tables may just have been dropped.
            guard result.error == nil, result.rowCount == 1 else { continue }
            tell(name, UInt64(clamping: result.integer(0, 2)))
            bound = max(bound, result.integer(0, 3))
            if result.integer(0, 4) >= result.integer(0, 3) { late.insert(name) }
        }
        try connection.finish(wait)
        return late
    }

    private func tell(_ name: [UInt8], _ end: UInt64) {
        let isNews = state.withLock { state in
            guard let known = state.entries[name]?.end, known < end else { return false }
            state.entries[name]?.end = end
            return true
        }
        if isNews { host.changed(name) }
    }

    // MARK: Delays

    private func endDelay() {
        delayedSince = nil
        guard isDelayReported else { return }
        isDelayReported = false
        host.log(.info, "changes are shown again")
        availability.note(delay: nil)
    }

    /// Tells the administrator of a transaction that holds feeds up for long.
    private func noteDelay(_ connection: Connection) throws(StorageFailure) {
        let since = delayedSince ?? Clock.monotonic
        delayedSince = since
        guard !isDelayReported, Clock.monotonic - since > Self.longDelay else { return }
        isDelayReported = true
        let reason = "changes are not shown before \(try blocker(connection)) has ended"
        host.log(.warning, reason)
        availability.note(delay: reason)
    }

    /// The oldest transaction, as far as the server tells.
    private func blocker(_ connection: Connection) throws(StorageFailure) -> String {
        let result = try connection.query(
            """
            SELECT who FROM (
                SELECT age(backend_xid) AS age, 'the transaction of process ' || pid || ' of the server (user '
                    || coalesce(usename, 'unknown') || ', ' || coalesce(application_name, '') || ')' AS who
                FROM pg_stat_activity WHERE backend_xid IS NOT NULL
                UNION ALL SELECT age(transaction), 'the prepared transaction ' || gid FROM pg_prepared_xacts
            ) AS transactions ORDER BY age DESC LIMIT 1
            """, Parameters(), [], wait(connection))
        guard result.error == nil, result.rowCount == 1 else { return "a transaction that is in progress" }
        return singleLine(result.text(0, 0))
    }
}
