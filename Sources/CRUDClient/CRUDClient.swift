import CRUDJSON
@_exported public import CRUDModel
import CRUDWire
public import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A connection to a crudd daemon: the way from an application to its records, whatever stores them.
///
/// ```swift
/// let client = try await CRUDClient.connect()
/// let clients = client.repository("Clients Database")
/// try await clients.create(id: "client", item: Client(name: "Chill Client"))
/// ```
///
/// One client is one connection, to be shared by any number of tasks: their calls are pipelined, and no call waits for
/// another's answer.
///
/// ### When the connection is lost
/// The client connects again by itself, with a pause that grows from 10 milliseconds to a second while that fails. Calls
/// that were made meanwhile wait for the connection until their deadline. Those that had been sent already:
/// - one that only reads is sent again;
/// - one that writes throws ``CRUDError/Code/outcomeUnknown``: it may or may not have been applied, and only the
///   application knows whether it may be made twice.
///
/// ### Deadlines and cancellation
/// Every call has a deadline, 30 seconds from its beginning unless ``Options/timeout`` or ``withDeadline(in:_:)`` says
/// otherwise, and every call honours the cancellation of its task. What the caller gets depends on how far the call was:
///
/// | | at the deadline | cancelled |
/// | --- | --- | --- |
/// | never sent | ``CRUDError/Code/unavailable`` | `CancellationError`, and it never will be sent |
/// | sent, only reads | ``CRUDError/Code/unavailable`` | `CancellationError` |
/// | sent, writes | ``CRUDError/Code/outcomeUnknown`` | ``CRUDError/Code/outcomeUnknown`` |
///
/// At a deadline the error's ``CRUDError/cause`` is ``DeadlineExceeded``.
public final class CRUDClient: Sendable {
    /// Where a daemon listens unless its configuration says otherwise.
    public static let defaultPath = "/run/crudd/crudd.sock"

    /// Where the daemon listens.
    public let path: String

    /// When a call of the current task must be answered, if ``withDeadline(in:_:)`` has set that.
    @TaskLocal static var deadline: ContinuousClock.Instant?

    /// One thread for all clients of the process that were not handed an event loop group of their own.
    private static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let timeout: Duration
    private let calls: CallQueue
    private let lastID = Atomic(0)

    private init(path: String, options: Options) {
        self.path = path
        timeout = options.timeout
        calls = CallQueue(
            connection: Connection(
                path: path, name: options.name, timeout: TimeAmount(options.timeout),
                eventLoop: (options.eventLoopGroup ?? Self.eventLoops).next()))
    }

    deinit {
        calls.append(.closing(nil))
    }

    /// Connects to the daemon at `path`.
    ///
    /// - Parameters:
    ///   - path: the daemon's socket. Not given: `$CRUDD_SOCKET`, and where that is not set, ``defaultPath``.
    ///   - options: how long calls may take and the like.
    /// - Throws: ``CRUDError/Code/unavailable``, at once and with the path in the message, where no daemon answers;
    ///   ``CRUDError/Code/limitExceeded`` where it has all the sessions that it takes;
    ///   ``CRUDError/Code/unsupported`` where it does not speak version 1 of the protocol.
    public static func connect(path: String? = nil, options: Options = Options()) async throws -> CRUDClient {
        let client = CRUDClient(path: path ?? environmentPath ?? defaultPath, options: options)
        try await client.open()
        return client
    }

    /// The records of the collection `name`.
    ///
    /// Nothing is sent yet: a collection that the daemon does not know shows with the first call.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    public func repository(_ name: String) -> RemoteRepository {
        RemoteRepository(client: self, collection: name)
    }

    /// Runs `operation` with a deadline that all calls in it share, those of its child tasks included.
    ///
    /// It takes the place of ``Options/timeout``. Inside another such operation the earlier deadline holds.
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

    /// Closes the connection. Calls under way fail: those that were sent and write with
    /// ``CRUDError/Code/outcomeUnknown``, all others, and all that come later, with ``CRUDError/Code/unavailable``.
    ///
    /// A client that nothing refers to any more closes by itself.
    public func close() async {
        await withCheckedContinuation { calls.append(.closing($0)) }
    }

    /// Makes a call and waits for its result.
    ///
    /// - Parameter params: writes the value of the request's `params`.
    /// - Returns: the result as JSON text.
    func call(_ method: RemoteMethod, _ params: (inout JSONWriter) -> Void = { $0.object { _ in } }) async throws
        -> [UInt8]
    {
        try Task.checkCancellation()
        let id = lastID.add(1, ordering: .relaxed).newValue
        let frame = RequestEncoder.frame(id: id, method: method.name, params: params)
        let deadline = NIODeadline.now() + remainingTime
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                calls.append(
                    .call(Call(id: id, method: method, frame: frame, deadline: deadline, continuation: continuation)))
                // Had the task been cancelled before, the handler would have spoken of a call that was not there yet.
                if Task.isCancelled { calls.append(.cancellation(id: id)) }
            }
        } onCancel: {
            calls.append(.cancellation(id: id))
        }
    }

    private func open() async throws {
        try Task.checkCancellation()
        let deadline = NIODeadline.now() + remainingTime
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                calls.append(.opening(continuation, deadline: deadline))
                if Task.isCancelled { calls.append(.openingCancelled) }
            }
        } onCancel: {
            calls.append(.openingCancelled)
        }
    }

    private var remainingTime: TimeAmount {
        TimeAmount(Self.deadline.map { $0 - .now } ?? timeout)
    }

    /// `$CRUDD_SOCKET`; nil where that is empty or not set.
    private static var environmentPath: String? {
        // What getenv points at is copied here, before anything else can run.
        guard let value = unsafe getenv("CRUDD_SOCKET") else { return nil }
        let path = unsafe String(cString: value)
        return path.isEmpty ? nil : path
    }
}

extension CRUDClient {
    /// How a client behaves.
    public struct Options: Sendable {
        /// How long a call may take, from its beginning to its answer.
        public var timeout: Duration
        /// What the client calls itself to the daemon.
        public var name: String
        /// Whose event loop the connection lives on. Nil: one thread that all such clients of the process share. The
        /// group must outlive the client.
        public var eventLoopGroup: (any EventLoopGroup)?

        public init(
            timeout: Duration = .seconds(30), name: String = "CRUDClient/\(CRUDVersion.current)",
            eventLoopGroup: (any EventLoopGroup)? = nil
        ) {
            self.timeout = timeout
            self.name = name
            self.eventLoopGroup = eventLoopGroup
        }
    }
}
