import CRUDJSON
import CRUDModel
import CRUDWire
import NIOCore
import NIOPosix

/// The client's end of the connection, confined to one event loop: it connects, reconnects after a loss, and passes
/// calls to the daemon and replies back.
///
/// It connects when there is something to send, so that a missing daemon costs an idle application nothing. A
/// connection is `up` when the daemon has replied to `session.hello`, which includes the maximum length of requests.
/// One timer serves all times: the deadlines of calls, the timeout of an attempt to connect, the end of a pause between
/// two attempts.
final class DaemonConnection {
    private enum State {
        /// There is neither a connection nor an attempt to connect.
        case down
        /// The socket is being connected, or the daemon has not replied to the hello, which it must by that deadline.
        case connecting(FrameHandler, NIODeadline)
        case up(FrameHandler)
        case closed
    }

    /// The hello's id; calls have theirs from 1 on.
    private static let helloID = 0
    /// How many bytes are written to the socket at once, if frames are short.
    private static let burstBytes = 64 << 10
    private static let shortestPause = TimeAmount.milliseconds(10)
    private static let longestPause = TimeAmount.seconds(1)

    let eventLoop: any EventLoop

    private let path: String
    private let name: String
    /// How long an attempt to connect may take.
    private let timeout: TimeAmount
    private let log: ConnectionLog

    private var state = State.down
    private var calls = CallTable()
    private var decoder = ResponseDecoder()
    /// The longest request that the daemon accepted when the connection was made.
    private var maximumFrameBytes = DefaultLimits.frameBytes
    /// The caller that waits for the first connection, and its deadline.
    private var opening: (continuation: CheckedContinuation<Void, any Error>, deadline: NIODeadline)?

    /// Whether the daemon has replied to a hello, or an attempt to connect has failed.
    private var hasHistory = false
    /// How many attempts in a row have led to no reply to a call.
    private var failures = 0
    private var lastError: CRUDError?
    /// When the next attempt may be made.
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)

    private var alarm: Scheduled<Void>?
    private var alarmTime = NIODeadline.distantFuture

    init(path: String, name: String, timeout: TimeAmount, log: ConnectionLog, eventLoop: any EventLoop) {
        self.log = log
        self.path = path
        self.name = name
        self.timeout = timeout
        self.eventLoop = eventLoop
    }

    // MARK: From the tasks

    func take(_ entries: [CallQueue.Entry]) {
        let now = NIODeadline.now()
        for entry in entries {
            switch entry {
            case .opening(let continuation, let deadline): open(continuation, deadline: deadline)
            case .openingCancelled: cancelOpening()
            case .call(let call): add(call, now)
            case .cancellation(let id): calls.cancel(id)
            case .closing(let continuation):
                close(.closed())
                continuation?.resume()
            }
        }
        send()
    }

    private func add(_ call: PendingCall, _ now: NIODeadline) {
        if case .closed = state {
            call.fail(.closed())
        } else if call.deadline <= now {
            call.fail(.neverSent(call, nil))
        } else {
            calls.add(call)
            wake(at: call.deadline)
        }
    }

    private func open(_ continuation: CheckedContinuation<Void, any Error>, deadline: NIODeadline) {
        opening = (continuation, deadline)
    }

    private func cancelOpening() {
        guard let opening else { return }
        self.opening = nil
        close(.closed())
        opening.continuation.resume(throwing: CancellationError())
    }

    private func close(_ error: CRUDError) {
        handler?.detach()
        state = .closed
        calls.close(error)
        opening?.continuation.resume(throwing: error)
        opening = nil
        alarm?.cancel()
        alarm = nil
    }

    // MARK: Connecting

    private func connect(deadline: NIODeadline) {
        let handler = FrameHandler(connection: self)
        state = .connecting(handler, deadline)
        wake(at: deadline)
        let bound = NIOLoopBound(handler, eventLoop: eventLoop)
        ClientBootstrap(group: eventLoop)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 64 << 10))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(bound.value) }
            }
            .connect(unixDomainSocketPath: path)
            .assumeIsolated()
            .whenFailure { [self] error in
                guard case .connecting(let current, _) = state, current === handler else { return }
                failAttempt(.notConnected(path: path, error))
            }
    }

    /// The socket is connected.
    func connected() {
        let frame = RequestEncoder.frame(id: Self.helloID, method: RemoteMethod.hello.name) { [name] request in
            request.object { params in
                params.member("client", name)
                params.member("protocol", ProtocolVersion.current)
            }
        }
        handler?.write(ByteBuffer(bytes: frame))
    }

    private func failAttempt(_ error: CRUDError) {
        log.note(.failed(error, count: failures + 1), path: path)
        hasHistory = true
        handler?.detach()
        if let opening, !Self.isTransient(error) || opening.deadline <= .now() {
            close(error)
        } else {
            disconnect(error)
        }
    }

    /// Whether the daemon exists and merely its queue of new connections is full.
    private static func isTransient(_ error: CRUDError) -> Bool {
        (error.cause as? IOError)?.errnoCode == EAGAIN
    }

    private func disconnect(_ error: CRUDError) {
        state = .down
        lastError = error
        let pause = min(Self.shortestPause * (1 << Int64(min(failures, 10))), Self.longestPause)
        // Random, lest all clients that have lost the same daemon reconnect at the same moment.
        pauseEnd =
            failures == 0 ? .now() : .now() + .nanoseconds(.random(in: pause.nanoseconds / 2...pause.nanoseconds))
        failures += 1
        send()
    }

    // MARK: From the daemon

    func received(_ text: ByteBuffer) {
        let response: Response
        do {
            response = try decoder.decode(text.readableBytesUInt8Span)
        } catch {
            return protocolViolated(error.description)
        }
        switch (state, response.id, response.outcome) {
        case (.connecting(let handler, _), Self.helloID, .result(let slice)):
            completeHello(handler, slice.bytes(text.readableBytesUInt8Span))
        case (.connecting, _, .error(let error)):
            failAttempt(error)
        case (.up, let id?, let outcome):
            complete(id, outcome, text)
        case (.up(let handler), nil, .error(let error)) where error.details.limit == "frame_bytes":
            // The daemon's configuration has changed since the hello.
            handler.detach()
            calls.frameRejected()
            disconnect(error)
        case (_, nil, .error(let error)):
            // The daemon could not determine which request the frame had.
            protocolViolated("it rejected a frame (\(error))")
        default:
            protocolViolated("a reply without a request")
        }
    }

    private func completeHello(_ handler: FrameHandler, _ result: [UInt8]) {
        guard let hello = ResultObject(result), hello.integer("protocol") == ProtocolVersion.current else {
            return failAttempt(
                CRUDError(.unsupported, "the daemon at \(path) speaks another version of the protocol than 1"))
        }
        maximumFrameBytes = hello.object("limits")?.integer("frame_bytes") ?? DefaultLimits.frameBytes
        state = .up(handler)
        log.note(.connected(isAgain: hasHistory), path: path)
        hasHistory = true
        opening?.continuation.resume()
        opening = nil
        send()
    }

    private func complete(_ id: Int, _ outcome: Response.Outcome, _ text: ByteBuffer) {
        guard let call = calls.takeReplied(id) else {
            return protocolViolated("a reply to request \(id), which was not sent")
        }
        failures = 0
        guard let continuation = call?.continuation else { return }
        switch outcome {
        case .result(let slice): continuation.resume(returning: slice.bytes(text.readableBytesUInt8Span))
        case .error(let error): continuation.resume(throwing: error)
        }
    }

    func protocolViolated(_ violation: String) {
        let error = CRUDError.protocolViolation(path: path, violation)
        if case .connecting = state { return failAttempt(error) }
        log.note(.violated(error), path: path)
        handler?.detach()
        calls.protocolViolated(error)
        disconnect(error)
    }

    /// The peer has closed the channel, or the channel has failed.
    func channelClosed(_ cause: (any Error)?) {
        let error = CRUDError.connectionLost(path: path, cause)
        if case .connecting = state { return failAttempt(error) }
        log.note(.lost(error), path: path)
        handler?.detach()
        calls.connectionLost(error)
        disconnect(error)
    }

    // MARK: To the daemon

    private var handler: FrameHandler? {
        switch state {
        case .connecting(let handler, _), .up(let handler): handler
        case .down, .closed: nil
        }
    }

    /// Sends waiting calls as far as the socket takes them; connects if there is no connection.
    func send() {
        while case .up(let handler) = state, calls.hasUnsent, handler.isWritable {
            var buffer = ByteBuffer()
            calls.send(into: &buffer, targetBytes: Self.burstBytes, maximumFrameBytes: maximumFrameBytes)
            if buffer.readableBytes > 0 { handler.write(buffer) }
        }
        guard case .down = state, calls.hasWaiting || opening != nil else { return }
        let now = NIODeadline.now()
        if now >= pauseEnd {
            connect(deadline: opening?.deadline ?? now + timeout)
        } else {
            wake(at: pauseEnd)
        }
    }

    // MARK: Time

    private func wake(at time: NIODeadline) {
        guard time < alarmTime else { return }
        alarm?.cancel()
        alarmTime = time
        alarm = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [self] in tick() }
    }

    private func tick() {
        alarmTime = .distantFuture
        let now = NIODeadline.now()
        if let next = calls.expire(at: now, obstacle: obstacle) { wake(at: next) }
        if case .connecting(_, let deadline) = state {
            if now < deadline { wake(at: deadline) } else { failAttempt(.notConnected(path: path, DeadlineExceeded())) }
        }
        send()
    }

    /// Why waiting calls are not sent.
    private var obstacle: CRUDError? {
        if case .up = state { CRUDError(.unavailable, "the daemon does not read") } else { lastError }
    }
}
