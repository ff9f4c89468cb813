import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire
import Logging

/// One connection: cuts its bytes into frames, keeps the order of effect, and bounds what its peer can make the daemon
/// hold.
///
/// **Order.** Frames are executed in the order in which they come. A request that has to wait for earlier ones on its
/// collection is kept in the ``CollectionOrder``; a batch array that cannot be started to its end holds back the frames
/// after it.
///
/// **Bounds.** The session is not read from while it has too many requests in flight, nor while there is no room for
/// more in its ``SessionAccount``; and no request starts while there is none for its reply. It is back-pressure, not an
/// error: the peer's own socket fills.
///
/// **Ends.** After its peer has shut down its writing side, or has sent a frame that is too long or takes too long, a
/// session still replies to what it has accepted and then closes. The error of a frame that is too long comes last, so
/// that its peer knows what was executed.
final class Session: StreamHandler {
    enum Phase {
        /// Frames are accepted.
        case serving
        /// Nothing more is accepted; the session closes when every request has its reply.
        case finishing
        case closed
    }

    /// A frame of which a part has come.
    struct PartialFrame {
        /// When it has taken too long, on the loop's clock.
        var deadline: Duration
        /// How much room it has been given.
        var grantedBytes = 0
    }

    /// What every frame touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread uses it, and nothing that is called during an access comes back to it.
    struct State {
        /// Set right after the session is made: a stream needs its handler first.
        var stream: Stream?
        var phase = Phase.serving
        var authority: Authority
        var order = CollectionOrder()
        var array: BatchArray?
        /// Reads whose records take more room than they were given, in the order in which they were started.
        var unfinishedReads: [PendingRequest] = []
        /// How many requests have been started that a backend executes.
        var startedRequests: UInt64 = 0
        /// Requests that have been accepted and are not done, those that follow aside.
        var requestsInFlight = 0
        /// Requests that wait for changes, or have waited for them and are not done.
        var followers = 0
        /// What these hold.
        var followerBytes = 0
        /// The requests that wait for changes or may come to wait.
        var changes = ChangeRequests()
        var partialFrame: PartialFrame?
        /// What has come and has not been consumed, or the room that it has been given.
        var inputBytes = 0
        /// How much room a frame waits for, for its rest or for its request; 0: none does.
        var neededBytes = 0
        /// When something last came or went, on the loop's clock.
        var lastActivity: Duration
        /// What the session has had executed, and in which iteration.
        var workDone = 0
        var iterationOfWork: UInt64 = 0
        /// Whether there are frames that have come and not been accepted.
        var isBehind = false
        /// What is replied last, to a frame that ended the session.
        var rejection: CRUDError?
        /// How many requests have come, elements of batch arrays included.
        var requestCount: UInt64 = 0
    }

    /// No other session of the daemon ever has it.
    let number: Int
    let peer: Peer
    let account: SessionAccount
    @exclusivity(unchecked) var state: State
    let connectedAt = CallContext.now
    /// What the client calls itself.
    var client = ""
    /// When it is closed although its peer has not read its replies, on the loop's clock; nil unless an administrator
    /// has closed it.
    var closingDeadline: Duration?
    /// On which lists of its set it is.
    var lists: SessionSet.Lists = []
    /// The set that it belongs to until it is closed.
    let sessions: SessionSet
    let loop: LoopState

    /// How much a session may have executed in one iteration, and how many bytes of replies, so that no session keeps
    /// an iteration to itself. A frame counts as sixteen and one more for each kibibyte, an element of an array or an
    /// id of many as one.
    private static let workPerIteration = 1024
    static let workOfFrame = 16
    static let replyBytesPerIteration = 1 << 20
    /// How much is kept of what a client calls itself.
    static let maximumClientNameBytes = 128
    /// How much of a frame comes in one iteration at the most.
    private static let inputBytesPerIteration = 256 << 10

    init(_ number: Int, peer: Peer, authority: Authority, in sessions: SessionSet) {
        self.number = number
        self.peer = peer
        self.sessions = sessions
        loop = sessions.loop
        account = SessionAccount(sessions.buffers.account(of: peer.uid))
        state = State(authority: authority, lastActivity: sessions.loop.now)
    }

    /// Takes over a connected socket.
    func serve(_ descriptor: CInt) throws(SystemCallError) {
        state.stream = try Stream(descriptor, on: loop.eventLoop, handler: self)
    }

    /// What the peer may do by the access rules that are in force.
    var authority: Authority {
        get { state.authority }
        _modify { yield &state.authority }
    }

    /// What an administrator is told of it.
    var description: SessionDescription {
        SessionDescription(
            number: number, uid: peer.uid, client: client, connectedAt: connectedAt, inflight: state.requestsInFlight,
            followers: state.followers, requests: state.requestCount, receivedBytes: state.stream?.receivedBytes ?? 0,
            sentBytes: state.stream?.sentBytes ?? 0, heldBytes: account.held,
            rate: state.authority.rate, limits: state.authority.limits)
    }

    // MARK: Logging

    /// Where its requests have come from, for the log.
    var origin: RequestOrigin { RequestOrigin(session: number, uid: peer.uid, client: client) }

    /// Logs what happens to the session; never what is in its records.
    func debug(_ event: @autoclosure () -> String) {
        if loop.logsSessions { loop.service.logger.debug("\(origin): \(event())") }
    }

    func trace(_ event: @autoclosure () -> String) {
        if loop.logsRequests { loop.service.logger.trace("\(origin): \(event())") }
    }

    /// Logs that the peer may not do what it wants.
    ///
    /// - Parameter operation: of a `record.batch`.
    func noteDenial(
        of method: Method, _ operation: Operation.Kind? = nil, on collection: [UInt8]?, _ traceParent: TraceParent?
    ) {
        guard let more = loop.denialLimit.admit(at: loop.now) else { return }
        var request = method.name.description
        if let operation { request += ": \(operation)" }
        if let collection { request += " on collection \(quoted(collection))" }
        let trace = traceParent.map { ", trace \($0.traceID)" } ?? ""
        loop.service.logger.info(
            "\(origin): \(request) is denied by the access rules\(trace)\(more)",
            metadata: metadata(method, collection, traceParent))
    }

    /// Logs and keeps a slow request.
    func noteSlow(_ request: SlowRequest) {
        loop.service.slowLog.append(request)
        guard let more = loop.slowLimit.admit(at: loop.now) else { return }
        var metadata = metadata(request.method, request.collection, request.traceParent)
        if !client.isEmpty { metadata["client"] = "\(client)" }
        let name = client.isEmpty ? "" : ", client \(quoted(client.utf8))"
        loop.service.logger.notice(
            "\(origin)\(name): \(request)\(more)", metadata: metadata)
    }

    /// Logs an act that administrators may be asked about. Those that need `admin` are never left out.
    func noteAct(
        _ method: Method, on collection: [UInt8]?, _ details: AuditEntry.Details, _ outcome: RequestOutcome,
        _ traceParent: TraceParent?
    ) {
        var suffix = ""
        if method.definition.access != .admin {
            guard let more = loop.deletionLimit.admit(at: loop.now) else { return }
            suffix = more
        }
        let entry = AuditEntry(
            method, on: collection, details, from: origin, outcome, traceParent, suffix: suffix)
        loop.service.audit.append(entry, to: loop.service.logger)
    }

    private func metadata(
        _ method: Method, _ collection: [UInt8]?, _ traceParent: TraceParent?
    ) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "session": "\(number)", "uid": "\(peer.uid)", "method": "\(method.name)",
        ]
        if let collection { metadata["collection"] = "\(String(decoding: collection, as: UTF8.self))" }
        if let traceParent { metadata.add(traceParent) }
        return metadata
    }

    // MARK: Frames

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        state.lastActivity = loop.now
        sessions.inputCount &+= 1
        state.isBehind = false
        let partialFrame = state.partialFrame.take()
        var consumed = 0
        let enoughOutput = stream.pendingOutputBytes + Self.replyBytesPerIteration
        while state.phase == .serving, bytes.count - consumed >= FrameHeader.size {
            let length = FrameHeader.length(bytes.extracting(consumed...))
            guard length <= loop.limits.frameBytes else {
                rejectFrame()
                break
            }
            let end = consumed + FrameHeader.size + length
            guard end <= bytes.count else {
                let frame = (consumed == 0 ? partialFrame : nil) ?? PartialFrame(deadline: loop.deadline)
                awaitRest(of: frame, end - consumed, received: bytes.count - consumed, from: stream)
                break
            }
            guard canAccept(length, replacing: consumed == 0 ? state.inputBytes : 0) else {
                state.isBehind = true
                awaitRoom(for: length)
                break
            }
            guard !hasHadItsShare, stream.pendingOutputBytes < enoughOutput else {
                state.isBehind = true
                stream.resumeNextIteration()
                break
            }
            spend(Self.workOfFrame + length >> 10)
            execute(frame: bytes.extracting(consumed + FrameHeader.size..<end))
            consumed = end
        }
        // What comes after the last frame that is accepted is not kept.
        if state.phase != .serving { consumed = bytes.count }
        state.inputBytes = max(bytes.count - consumed, state.partialFrame?.grantedBytes ?? 0)
        chargeStream()
        return consumed
    }

    /// Receives the rest of a frame, as far as there is room.
    private func awaitRest(of frame: PartialFrame, _ size: Int, received: Int, from stream: Stream) {
        state.partialFrame = frame
        sessions.add(self, to: .overdue)
        let next = min(size, received + Self.inputBytesPerIteration)
        if next <= frame.grantedBytes || room(forFrame: next, replacing: state.inputBytes) == .available {
            stream.expects(totalBytes: size)
        } else {
            awaitRoom(for: size)
        }
    }

    /// A frame that is too long ends the session: where the next one begins is a gigabyte away, or nowhere.
    private func rejectFrame() {
        let maximum = loop.limits.frameBytes
        debug("a frame is longer than \(maximum) bytes")
        state.rejection = .limit("frame_bytes", maximum, "the frame is longer than \(maximum) bytes")
        finish()
        endFollowing()
    }

    /// Whether it ends when everything has been replied to, for an administrator or after a frame that is too long.
    var isClosing: Bool { closingDeadline != nil || state.rejection != nil }

    // MARK: Replies

    /// Whether anybody may read a reply.
    var isWanted: Bool { state.stream?.isHungUp == false }

    /// The same for other threads; nil where the connection has been closed.
    var hangUp: HangUp? { state.stream?.hangUp }

    /// Appends a response to the session's output, or to those of a batch array.
    ///
    /// - Parameters:
    ///   - id: the request's, as it was sent; nil for null.
    ///   - result: appends the value of `result`, or throws the error to reply instead; returns false where there is
    ///     nothing to reply yet.
    /// - Returns: how the request has ended; nil where there is nothing to reply yet.
    func reply(
        to id: Span<UInt8>?, in array: BatchArray?, _ result: (inout StreamBuffer) throws(CRUDError) -> Bool
    ) -> RequestOutcome? {
        if let array { return array.appendResponse(to: id, result) }
        guard let stream = state.stream else { return StreamBuffer.outcome(of: result) }
        return stream.output.appendFrame(to: id, maximumBytes: loop.limits.frameBytes, result)
    }

    /// Appends an error in place of a result.
    ///
    /// - Parameters:
    ///   - method: nil where it was not recognised.
    ///   - arrival: when the request has come, on the loop's clock.
    func fail(_ error: CRUDError, to id: Span<UInt8>?, in array: BatchArray?, of method: Method?, arrival: Duration) {
        _ = reply(to: id, in: array) { _ throws(CRUDError) in throw error }
        count(method, RequestOutcome(error.code), arrival: arrival)
    }

    /// Counts a request that has ended.
    ///
    /// - Returns: whether it has come in this iteration.
    @discardableResult
    func count(_ method: Method?, _ outcome: RequestOutcome, arrival: Duration) -> Bool {
        loop.meter.count(method, outcome, arrival: arrival, now: loop.now)
    }

    /// Sends the reply to an array once every element has its response.
    func finishIfComplete(_ array: BatchArray) {
        guard array.isFinished else { return }
        state.stream.map { array.finish(into: &$0.output) }
        charge(requests: 0, bytes: -array.takeCharge())
    }

    // MARK: Fairness

    /// Charges work to the session's share of this iteration.
    func spend(_ work: Int) {
        if state.iterationOfWork != sessions.iteration {
            state.iterationOfWork = sessions.iteration
            state.workDone = 0
        }
        state.workDone += work
    }

    /// Whether the session has to leave the rest of this iteration to others.
    var hasHadItsShare: Bool {
        state.iterationOfWork == sessions.iteration && state.workDone >= Self.workPerIteration
    }

    // MARK: The end

    func reachedEnd(of stream: Stream) {
        finish()
    }

    func closed(_ stream: Stream) {
        state.phase = .closed
        state.isBehind = false
        state.stream = nil
        dropInput()
        for read in state.unfinishedReads {
            takeUnfinished(read)
            read.hasReplied()
            read.ended()
        }
        endFollowing()
        sessions.hasClosed(self, stream)
    }

    private func dropInput() {
        state.partialFrame = nil
        state.inputBytes = 0
        state.neededBytes = 0
        chargeStream()
        account.endOverdraft()
    }

    /// Accepts nothing more, replies to what has been accepted, and closes.
    func finish() {
        guard state.phase == .serving else { return }
        state.phase = .finishing
        dropInput()
        closeIfFinished()
    }

    /// Whether a request that has come is not done.
    var hasRequests: Bool { hasStartedRequests || state.isBehind }

    /// Whether a request that has been accepted is not done.
    private var hasStartedRequests: Bool {
        state.requestsInFlight > 0 || state.followers > 0 || state.array != nil
    }

    /// Whether every request that has come is done and nothing is left to be sent.
    var isIdle: Bool { !hasRequests && outputBytes == 0 }

    /// Whether nothing has come or gone for so long.
    func isIdle(for time: Duration) -> Bool { isIdle && loop.now - state.lastActivity >= time }

    func closeIfFinished() {
        guard state.phase == .finishing, !hasStartedRequests else { return }
        if let error = state.rejection.take() { fail(error, to: nil, in: nil, of: nil, arrival: loop.now) }
        state.stream?.closeWhenFlushed()
    }
}
