import CRUDPluginKit
import Glibc
import Synchronization

/// A thread that changes tables, one at a time, on a connection of its own: neither the lease nor the records of any
/// collection wait for it. What the server refuses is tried again, after a pause that grows.
// `connection` is the thread's alone.
final class SchemaWorker: @unchecked Sendable {
    // What changes is guarded by the lock of `state`.
    private final class Job: @unchecked Sendable {
        let collection: PostgreSQLCollection
        /// How often it has failed.
        var attempts = 0
        /// Something else has been declared since the attempt in progress was begun.
        var isOutdated = false
        var nextAttempt: Int64 = 0
        var loggedReason = ""

        init(_ collection: PostgreSQLCollection) {
            self.collection = collection
        }
    }

    private struct State {
        var jobs: [Job] = []
        /// The collection that is being changed.
        var current: PostgreSQLCollection?
        /// What ends the statement that is being executed.
        var cancellation: Cancellation?
    }

    private let settings: ConnectionSettings
    private let schema: Schema
    private let availability: Availability
    private let host: Host
    private let state = Mutex(State())
    private let thread = WorkerThread(named: "schema")
    private var connection: Connection?

    private static let firstPause: Int64 = 200_000_000
    private static let longestPause: Int64 = 60_000_000_000
    private static let cancellationMilliseconds: Int32 = 1000
    private static let pollMilliseconds: Int32 = 5

    init(_ settings: ConnectionSettings, _ schema: Schema, _ availability: Availability, _ host: Host) {
        self.settings = settings
        self.schema = schema
        self.availability = availability
        self.host = host
    }

    /// Has the table of a collection changed, unless that is already to be done.
    ///
    /// - Parameter milliseconds: for how long the first attempt is waited for.
    func change(_ collection: PostgreSQLCollection, waiting milliseconds: Int64) {
        let job: Job? = state.withLock { state in
            if let known = state.jobs.first(where: { $0.collection === collection }) {
                known.isOutdated = true
                return nil
            }
            let job = Job(collection)
            state.jobs.append(job)
            return job
        }
        thread.wake { self.run() }
        guard let job else { return }
        let end = Clock.monotonic + milliseconds * 1_000_000
        while Clock.monotonic < end, isFirstAttempt(job) { poll(nil, 0, Self.pollMilliseconds) }
    }

    private func isFirstAttempt(_ job: Job) -> Bool {
        state.withLock { state in state.jobs.contains { $0 === job } && job.attempts == 0 }
    }

    /// A collection is to be dropped: nothing of it is changed any more.
    func forget(_ collection: PostgreSQLCollection) {
        let cancellation = state.withLock { state in
            state.jobs.removeAll { $0.collection === collection }
            return state.current === collection ? state.cancellation : nil
        }
        guard let cancellation else { return }
        _ = cancellation.send(atMost: Self.cancellationMilliseconds)
        let end = Clock.monotonic + Int64(Self.cancellationMilliseconds) * 1_000_000
        while Clock.monotonic < end, state.withLock({ $0.current === collection }) {
            poll(nil, 0, Self.pollMilliseconds)
        }
    }

    /// Ends the thread. The server completes an index that it is making.
    func stop() {
        thread.stop()
        connection = nil
    }

    // MARK: The thread

    private func run() {
        while !thread.hasToStop {
            let now = Clock.monotonic
            let (job, next) = state.withLock { state in
                let job = state.jobs.filter { $0.nextAttempt <= now }.min { $0.nextAttempt < $1.nextAttempt }
                state.current = job?.collection
                job?.isOutdated = false
                return (job, state.jobs.map(\.nextAttempt).min())
            }
            guard let job else {
                thread.rest(next.map { Int32(clamping: max(0, $0 - now) / 1_000_000 + 1) } ?? -1)
                continue
            }
            do throws(StorageFailure) {
                try change(job.collection)
                finish(job)
            } catch {
                if let connection {
                    connection.recover()
                    if connection.isBroken { self.connection = nil }
                }
                fail(job, error)
            }
        }
    }

    private func change(_ collection: PostgreSQLCollection) throws(StorageFailure) {
        let server = try availability.server()
        let connection: Connection
        if let existing = self.connection, existing.belongs(to: server) {
            connection = existing
        } else {
            connection = try Connection(settings, to: server, availability)
            self.connection = connection
        }
        let cancellation = connection.makeCancellation()
        let isWanted = state.withLock { state in
            state.cancellation = cancellation
            return state.jobs.contains { $0.collection === collection }
        }
        defer { state.withLock { $0.cancellation = nil } }
        guard isWanted else { return }
        let wait = Wait(availability) { self.thread.hasToStop }.on(connection)
        try connection.limitStatements(wait)
        let catalog = Catalog(schema: schema, connection: connection, wait: wait)
        try TableChange(catalog: catalog, collection: collection).run()
    }

    private func finish(_ job: Job) {
        job.collection.note(refusal: nil)
        state.withLock { state in
            state.current = nil
            if !job.isOutdated { state.jobs.removeAll { $0 === job } }
        }
        if !job.loggedReason.isEmpty {
            host.log(.info, "the table \(job.collection.tableName) has been changed")
        }
    }

    private func fail(_ job: Job, _ failure: StorageFailure) {
        let doublings = min(job.attempts, 9)
        let pause = min(Self.firstPause << Int64(doublings), Self.longestPause)
        let isWanted = state.withLock { state in
            state.current = nil
            job.attempts += 1
            job.nextAttempt = Clock.monotonic + pause
            return state.jobs.contains { $0 === job }
        }
        job.collection.note(refusal: failure.message)
        guard isWanted, job.loggedReason != failure.message, !thread.hasToStop else { return }
        job.loggedReason = failure.message
        host.log(
            .warning,
            """
            the table \(job.collection.tableName) cannot be changed yet, and serves as it is: \(failure.message); \
            it is tried again
            """)
    }
}
