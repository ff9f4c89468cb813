import CRUDJSON
@_exported public import CRUDModel
import CRUDWire
public import NIOCore
import NIOPosix
import Synchronization

#if Logging
public import Logging
#endif

#if Tracing
public import Tracing
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Darwin
#endif

/// A connection to a crudd daemon, through which an application accesses its records, whatever stores them.
///
/// ```swift
/// let client = try await CRUDClient.connect()
/// let clients = client.repository("Clients Database")
/// try await clients.create(id: "client", item: Client(name: "Chill Client"))
/// ```
///
/// One client is one connection, which any number of tasks may share: calls are pipelined, and no call waits for the
/// reply to another. With ``Options/connections`` it has several, for an application that keeps more than one of the
/// daemon's threads busy. ``Options/maximumPendingCalls`` bounds what it holds in memory while the daemon is slow or
/// away.
///
/// ### When the connection is lost
/// The client reconnects automatically, with pauses that grow from 10 milliseconds to a second while that fails. New
/// calls wait for the connection until their deadline. Of the calls that were sent already,
/// - those that only read are sent again;
/// - those that write throw ``CRUDError/Code/outcomeUnknown``: they may or may not have been applied, and only the
///   application can decide whether to repeat them.
///
/// Calls are sent in bursts of about 64 KiB, when the socket has room for more. All calls of a burst count as sent,
/// even if the connection is lost before the last of them has been written.
///
/// ### Deadlines and cancellation
/// Every call has a deadline, 30 seconds after its start unless ``Options/timeout`` or ``withDeadline(in:_:)`` sets
/// another, and every call honours the cancellation of its task. The error depends on the progress of the call:
///
/// | | at the deadline | cancelled |
/// | --- | --- | --- |
/// | not sent | ``CRUDError/Code/timedOut`` | `CancellationError`; it will not be sent |
/// | sent, only reads | ``CRUDError/Code/timedOut`` | `CancellationError` |
/// | sent, writes | ``CRUDError/Code/outcomeUnknown`` | ``CRUDError/Code/outcomeUnknown`` |
///
/// At a deadline the error's ``CRUDError/cause`` is ``DeadlineExceeded``.
///
/// Tasks that follow changes leave the others alone: however many wait, calls are executed beside them, and one that is
/// cancelled occupies the daemon no longer.
public final class CRUDClient: RecordDatabase {
    /// Where a daemon listens by default.
    public static let defaultPath = "/run/crudd/crudd.sock"

    /// Where the daemon listens.
    public let path: String

    /// The deadline of the current task's calls, if ``withDeadline(in:_:)`` has set one.
    @TaskLocal package static var deadline: ContinuousClock.Instant?

    /// One thread for all clients of the process that have no event loop group of their own.
    private static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    let timeout: Duration
    /// One for each connection.
    private let queues: [CallQueue]
    private let limit: PendingCallLimit
    private let tracing: CallTracing
    /// The requests for changes that wait in the daemon.
    let polls = SharedPolls()
    private let lastID = Atomic(0)

    /// Makes a client that connects with its first call: the daemon need not be there yet.
    ///
    /// Calls wait for the daemon until their deadline, and fail then with ``CRUDError/Code/timedOut``.
    ///
    /// - Parameters:
    ///   - path: the daemon's socket; nil: `$CRUDD_SOCKET`, or ``defaultPath`` if that is not set.
    ///   - options: the timeout of calls and the like.
    public init(path: String? = nil, options: Options = Options()) {
        let path = path ?? Self.environmentPath ?? Self.defaultPath
        self.path = path
        timeout = options.timeout
        tracing = options.tracing
        let eventLoops: any EventLoopGroup = options.eventLoopGroup ?? Self.eventLoops
        queues = (0..<max(1, options.connections)).map { _ in
            CallQueue(
                connection: DaemonConnection(
                    path: path, name: options.name, timeout: TimeAmount(options.timeout), log: options.log,
                    eventLoop: eventLoops.next()))
        }
        limit = PendingCallLimit(maximum: options.maximumPendingCalls, eventLoop: eventLoops.next())
    }

    deinit {
        for queue in queues { queue.append(.closing(nil)) }
    }

    /// Connects to the daemon at `path`, which must be there; see ``init(path:options:)`` for one that need not be.
    ///
    /// - Parameters:
    ///   - path: the daemon's socket; nil: `$CRUDD_SOCKET`, or ``defaultPath`` if that is not set.
    ///   - options: the timeout of calls and the like.
    /// - Throws: ``CRUDError/Code/unavailable``, at once and with the path in the message, if there is no daemon;
    ///   ``CRUDError/Code/timedOut`` if it does not reply by the deadline;
    ///   ``CRUDError/Code/permissionDenied`` if the socket may not be opened: the message names the group to join;
    ///   ``CRUDError/Code/limitExceeded`` if it has its maximum number of sessions;
    ///   ``CRUDError/Code/unsupported`` if it does not speak version 1 of the protocol.
    public static func connect(path: String? = nil, options: Options = Options()) async throws -> CRUDClient {
        let client = CRUDClient(path: path, options: options)
        try await client.open()
        return client
    }

    /// The records of the collection `name`.
    ///
    /// Nothing is sent yet: the first call fails if the daemon does not know the collection.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    public func repository(_ name: String) -> RemoteRepository {
        RemoteRepository(client: self, collection: name)
    }

    /// Runs `operation` with a deadline for all calls in it, those of its child tasks included.
    ///
    /// It replaces ``Options/timeout``. If such operations are nested, the earlier deadline applies.
    ///
    /// ```swift
    /// try await CRUDClient.withDeadline(in: .seconds(2)) {
    ///     let draft: Article = try await articles.read(id: "draft")
    ///     try await articles.update(id: "front", item: draft)
    /// }
    /// ```
    public nonisolated(nonsending) static func withDeadline<Value>(
        in timeout: Duration, _ operation: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        let new = ContinuousClock.now + timeout
        return try await $deadline.withValue(deadline.map { min($0, new) } ?? new, operation: operation)
    }

    /// Closes the connection. Calls in flight fail: writes that were sent with ``CRUDError/Code/outcomeUnknown``, all
    /// others, and all later ones, with ``CRUDError/Code/unavailable``.
    ///
    /// A client that is not referenced any more closes itself.
    public func close() async {
        for queue in queues {
            await withCheckedContinuation { queue.append(.closing($0)) }
        }
    }

    /// Closes the connection when all calls have ended that are pending. Later ones throw
    /// ``CRUDError/Code/unavailable``.
    ///
    /// Requests that wait for changes are not waited for: they end then. If the task is cancelled, the client is closed
    /// at once, as by ``close()``.
    public func closeGracefully() async {
        await limit.drain()
        await close()
    }

    /// Makes a call and waits for its result.
    ///
    /// - Parameters:
    ///   - subject: what its span tells.
    ///   - waiting: how long the daemon may hold back its reply, in addition to the timeout. Such a call has no span.
    ///   - params: writes the value of the request's `params`. It is called when the call is admitted.
    /// - Returns: the result as JSON text.
    func call(
        _ method: RemoteMethod, on subject: CallSubject = CallSubject(), waiting: Duration = .zero,
        _ params: (inout JSONWriter) throws -> Void = { $0.object { _ in } }
    ) async throws -> [UInt8] {
        try Task.checkCancellation()
        let deadline = NIODeadline.now() + remainingTime(waiting)
        guard waiting == .zero else { return try await send(method, waiting: waiting, deadline, nil, params) }
        let span = tracing.begin(method, on: subject, at: path)
        do {
            try await limit.enter(method, deadline: deadline)
            defer { limit.leave() }
            let result = try await send(method, waiting: waiting, deadline, span.traceparent, params)
            span.end()
            return result
        } catch {
            span.end(throwing: error)
            throw error
        }
    }

    private func send(
        _ method: RemoteMethod, waiting: Duration, _ deadline: NIODeadline, _ traceparent: String?,
        _ params: (inout JSONWriter) throws -> Void
    ) async throws -> [UInt8] {
        let id = lastID.add(1, ordering: .relaxed).newValue
        var failure: (any Error)?
        let frame = RequestEncoder.frame(id: id, method: method.name, traceparent: traceparent) { writer in
            do { try params(&writer) } catch { failure = error }
        }
        if let failure { throw failure }
        let calls = queues[id % queues.count]
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                calls.append(
                    .call(
                        PendingCall(
                            id: id, method: method, frame: frame, deadline: deadline,
                            isHeldBack: waiting > .zero, continuation: continuation)))
                // If the task was cancelled before, the handler has referred to a call that was not in the queue yet.
                if Task.isCancelled { calls.append(.cancellation(id: id)) }
            }
        } onCancel: {
            calls.append(.cancellation(id: id))
        }
    }

    private func open() async throws {
        try Task.checkCancellation()
        let deadline = NIODeadline.now() + remainingTime()
        let calls = queues[0]
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                calls.append(.opening(continuation, deadline: deadline))
                if Task.isCancelled { calls.append(.openingCancelled) }
            }
        } onCancel: {
            calls.append(.openingCancelled)
        }
    }

    private func remainingTime(_ waiting: Duration = .zero) -> TimeAmount {
        TimeAmount(Self.deadline.map { $0 - .now } ?? timeout + waiting)
    }

    /// `$CRUDD_SOCKET`; nil if that is empty or not set.
    private static var environmentPath: String? {
        // The value is copied here, before anything else can change the environment.
        guard let value = unsafe getenv("CRUDD_SOCKET") else { return nil }
        let path = unsafe String(cString: value)
        return path.isEmpty ? nil : path
    }
}

extension CRUDClient {
    /// The options of a client.
    public struct Options: Sendable {
        /// How long a call may take, from its start to its reply.
        public var timeout: Duration
        /// The name under which the client introduces itself to the daemon.
        public var name: String
        /// The group whose event loop serves the connection; it must outlive the client. Nil: one thread that all such
        /// clients of the process share.
        public var eventLoopGroup: (any EventLoopGroup)?
        /// How many calls may be pending, at least 1: others wait, before their items are encoded, until one of these
        /// has ended. They honour their deadlines and cancellation as if they were sent. Requests for changes that wait
        /// for them do not count.
        public var maximumPendingCalls: Int
        /// How many connections the client has, at least 1; each but the first is made when it is needed.
        ///
        /// Calls are sent over all of them in turn. Only calls that follow each other, because one task awaits the
        /// first, are executed in their order then; with one connection those of concurrent tasks are, too.
        public var connections: Int
        #if Logging
        /// Where the client logs that its connection was lost, cannot be made, or was made again: a warning for the
        /// beginning of an outage and a notice for its end. It logs no ids and no items. Nil: nowhere.
        ///
        /// It exists if the package is used with the trait `Logging`.
        public var logger: Logger?
        var log: ConnectionLog { ConnectionLog(logger: logger) }
        #else
        var log: ConnectionLog { ConnectionLog() }
        #endif
        #if Tracing
        /// What makes a span of each call, with the names and attributes of OpenTelemetry's
        /// [conventions for databases](https://opentelemetry.io/docs/specs/semconv/db/database-spans/), and tells the
        /// daemon which trace it belongs to. No span has an id of a record, an item or a filter; requests that wait for
        /// changes have none. Nil: the tracer of the process, `InstrumentationSystem.tracer`.
        ///
        /// It exists if the package is used with the trait `Tracing`.
        public var tracer: (any Tracer)?
        var tracing: CallTracing { CallTracing(tracer: tracer) }
        #else
        var tracing: CallTracing { CallTracing() }
        #endif

        public init(
            timeout: Duration = .seconds(30), name: String = "CRUDClient/\(CRUDVersion.current)",
            eventLoopGroup: (any EventLoopGroup)? = nil, maximumPendingCalls: Int = 4096, connections: Int = 1
        ) {
            self.timeout = timeout
            self.name = name
            self.eventLoopGroup = eventLoopGroup
            self.maximumPendingCalls = maximumPendingCalls
            self.connections = connections
        }
    }
}
