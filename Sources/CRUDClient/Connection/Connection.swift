import CRUDJSON
import CRUDModel
import CRUDWire
import NIOCore
import NIOPosix

/// The client's end of the wire, confined to one event loop: it makes the connection, makes it anew when it is lost, and
/// carries calls to the daemon and answers back.
///
/// It connects when there is something to send, so that a daemon that is gone for long costs an idle application
/// nothing. A connection is `up` once the daemon has answered `session.hello`, which also tells how long frames may be.
/// One timer serves everything that time brings: calls whose deadline comes, an attempt that takes too long, the end of
/// a pause between two attempts.
final class Connection {
    private enum State {
        /// There is no connection and none on its way.
        case down
        /// The socket is being connected, or the daemon has yet to answer the hello, which it must by that deadline.
        case connecting(FrameHandler, NIODeadline)
        case up(FrameHandler)
        case closed
    }

    /// How long frames may be, either way, unless the daemon says otherwise.
    private static let usualFrameBytes = 16 << 20
    /// The hello's id; calls have theirs from 1 on.
    private static let helloID = 0
    /// How many bytes go to the socket in one write, if frames are short.
    private static let burstBytes = 64 << 10
    private static let shortestPause = TimeAmount.milliseconds(10)
    private static let longestPause = TimeAmount.seconds(1)

    let eventLoop: any EventLoop
    private(set) var maximumFrameBytes = usualFrameBytes

    private let path: String
    private let name: String
    /// How long an attempt to connect may take.
    private let timeout: TimeAmount

    private var state = State.down
    private var calls = CallTable()
    private var decoder = ResponseDecoder()
    /// Who waits for the client's first connection, and how long.
    private var opening: (continuation: CheckedContinuation<Void, any Error>, deadline: NIODeadline)?

    /// Attempts in a row after which the daemon has answered no call.
    private var failures = 0
    private var lastFault: CRUDError?
    /// When the next attempt may be made.
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)

    private var alarm: Scheduled<Void>?
    private var alarmTime = NIODeadline.distantFuture

    init(path: String, name: String, timeout: TimeAmount, eventLoop: any EventLoop) {
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

    private func add(_ call: Call, _ now: NIODeadline) {
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

    private func close(_ fault: CRUDError) {
        handler?.letGo()
        state = .closed
        calls.close(fault)
        opening?.continuation.resume(throwing: fault)
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

    private func failAttempt(_ fault: CRUDError) {
        handler?.letGo()
        if let opening, !Self.isPassing(fault) || opening.deadline <= .now() {
            close(fault)
        } else {
            goDown(fault)
        }
    }

    /// Whether `fault` says that the daemon is there and merely has a full queue of new connections.
    private static func isPassing(_ fault: CRUDError) -> Bool {
        (fault.cause as? IOError)?.errnoCode == EAGAIN
    }

    private func goDown(_ fault: CRUDError) {
        state = .down
        lastFault = fault
        let pause = min(Self.shortestPause * (1 << Int64(min(failures, 10))), Self.longestPause)
        // Clients that lost the same daemon do not all come back at the same moment.
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
            return protocolBroken(error.description)
        }
        switch (state, response.id, response.outcome) {
        case (.connecting(let handler, _), Self.helloID, .result(let slice)):
            greeted(handler, slice.bytes(text.readableBytesUInt8Span))
        case (.connecting, _, .error(let error)):
            failAttempt(error)
        case (.up, let id?, let outcome):
            answered(id, outcome, text)
        case (_, nil, .error(let error)):
            // The daemon cannot tell which of our requests it could not read.
            protocolBroken("it refused a frame (\(error))")
        default:
            protocolBroken("an answer that nobody asked for")
        }
    }

    private func greeted(_ handler: FrameHandler, _ result: [UInt8]) {
        guard let hello = ResultObject(result), hello.integer("protocol") == ProtocolVersion.current else {
            return failAttempt(
                CRUDError(.unsupported, "the daemon at \(path) speaks another version of the protocol than 1"))
        }
        maximumFrameBytes = hello.object("limits")?.integer("frame_bytes") ?? Self.usualFrameBytes
        state = .up(handler)
        opening?.continuation.resume()
        opening = nil
        send()
    }

    private func answered(_ id: Int, _ outcome: Response.Outcome, _ text: ByteBuffer) {
        guard let call = calls.takeAnswered(id) else {
            return protocolBroken("an answer to request \(id), which nobody made")
        }
        failures = 0
        guard let continuation = call?.continuation else { return }
        switch outcome {
        case .result(let slice): continuation.resume(returning: slice.bytes(text.readableBytesUInt8Span))
        case .error(let error): continuation.resume(throwing: error)
        }
    }

    func protocolBroken(_ fault: String) {
        let error = CRUDError.protocolBroken(path: path, fault)
        if case .connecting = state { return failAttempt(error) }
        handler?.letGo()
        calls.protocolBroken(error)
        goDown(error)
    }

    /// The channel has closed by itself.
    func lost(_ cause: (any Error)?) {
        let fault = CRUDError.connectionLost(path: path, cause)
        if case .connecting = state { return failAttempt(fault) }
        handler?.letGo()
        calls.connectionLost(fault)
        goDown(fault)
    }

    // MARK: To the daemon

    private var handler: FrameHandler? {
        switch state {
        case .connecting(let handler, _), .up(let handler): handler
        case .down, .closed: nil
        }
    }

    /// Sends what waits, as far as the socket takes it; without a connection it sees to it that there will be one.
    func send() {
        while case .up(let handler) = state, calls.hasWaiting, handler.isWritable {
            var buffer = ByteBuffer()
            calls.send(into: &buffer, enough: Self.burstBytes, maximumFrameBytes: maximumFrameBytes)
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

    /// Why calls that wait are not sent.
    private var obstacle: CRUDError? {
        if case .up = state { CRUDError(.unavailable, "the daemon does not read") } else { lastFault }
    }
}
