import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDStorage
import CRUDWire

/// One connection: cuts its bytes into frames, keeps the order of effect, and bounds what its peer can make the daemon
/// hold.
///
/// **Order.** Frames are executed in the order in which they come. A request that has to wait for earlier ones on its
/// collection is kept in the ``CollectionOrder``; a batch array that cannot be started to its end holds back the frames
/// after it.
///
/// **Bounds.** The session is not read from while it has too many requests in flight, or while what it holds, its own
/// requests and the replies that its peer does not read, is too much. It is back-pressure, not an error: the peer's own
/// socket fills.
///
/// **Ends.** After its peer has shut down its writing side, or has sent a frame that is too long, a session still
/// replies to what it has accepted and then closes.
final class Session: StreamHandler {
    private enum Phase {
        /// Frames are accepted.
        case serving
        /// Nothing more is accepted; the session closes when every request has its reply.
        case finishing
        case closed
    }

    /// What every frame touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread uses it, and nothing that is called during an access comes back to it.
    private struct State {
        /// Set right after the session is made: a stream needs its handler first.
        var stream: Stream?
        var phase = Phase.serving
        var authority: Authority
        var order = CollectionOrder()
        var array: BatchArray?
        /// Requests that have been accepted and are not done.
        var requestsInFlight = 0
        /// Bytes of requests that wait or are in flight.
        var heldBytes = 0
        /// Room that is reserved for a frame of which a part has come.
        var reservedBytes = 0
        /// Room that such a frame waits for.
        var wantedBytes = 0
        /// When something last came or went, on the loop's clock.
        var lastActivity: Duration
        /// What the session has had executed, and in which iteration.
        var workDone = 0
        var iterationOfWork: UInt64 = 0
        /// Whether there are frames that have come and not been accepted.
        var isBehind = false
    }

    let peer: Peer
    @exclusivity(unchecked) private var state: State
    /// Whether it is on the list of those to be resumed.
    var isToBeResumed = false
    /// The set that it belongs to until it is closed.
    let sessions: SessionSet
    let loop: LoopState

    /// How much a session may have executed in one iteration, and how many bytes of replies, so that no session keeps
    /// an iteration to itself. A frame counts as sixteen, an element of an array or an id of many as one.
    private static let workPerIteration = 1024
    private static let workOfFrame = 16
    private static let replyBytesPerIteration = 1 << 20

    init(peer: Peer, authority: Authority, in sessions: SessionSet) {
        self.peer = peer
        self.sessions = sessions
        loop = sessions.loop
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

    // MARK: Frames

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        state.lastActivity = loop.now
        state.isBehind = false
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
                if reserve(end - consumed) { stream.expects(totalBytes: end - consumed) } else { pause() }
                break
            }
            releaseReserved()
            guard hasRoom else {
                state.isBehind = true
                pause()
                break
            }
            guard !hasHadItsShare, stream.pendingOutputBytes < enoughOutput else {
                state.isBehind = true
                stream.resumeNextIteration()
                break
            }
            spend(Self.workOfFrame)
            execute(frame: bytes.extracting(consumed + FrameHeader.size..<end))
            consumed = end
        }
        // What comes after the last frame that is accepted is not kept.
        return state.phase == .serving ? consumed : bytes.count
    }

    /// A frame that is too long ends the session: where the next one begins is a gigabyte away, or nowhere.
    private func rejectFrame() {
        let maximum = loop.limits.frameBytes
        fail(.limit("frame_bytes", maximum, "the frame is longer than \(maximum) bytes"), to: nil, in: nil)
        finish()
    }

    // MARK: Replies

    /// Whether anybody may read a reply.
    var isWanted: Bool { state.stream?.isHungUp == false }

    /// Appends a response to the session's output, or to those of a batch array.
    ///
    /// - Parameters:
    ///   - id: the request's, as it was sent; nil for null.
    ///   - result: appends the value of `result`, or throws the error to reply instead; returns false where there is
    ///     nothing to reply yet.
    /// - Returns: what `result` has returned.
    func reply(
        to id: Span<UInt8>?, in array: BatchArray?, _ result: (inout StreamBuffer) throws(CRUDError) -> Bool
    ) -> Bool {
        if let array { return array.appendResponse(to: id, result) }
        guard let stream = state.stream else { return true }
        return stream.output.appendFrame(to: id, maximumBytes: loop.limits.frameBytes, result)
    }

    /// Appends an error in place of a result.
    func fail(_ error: CRUDError, to id: Span<UInt8>?, in array: BatchArray?) {
        _ = reply(to: id, in: array) { _ throws(CRUDError) in throw error }
    }

    /// Sends the reply to an array once every element has its response.
    func finishIfComplete(_ array: BatchArray) {
        if array.isFinished { state.stream.map { array.finish(into: &$0.output) } }
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

    // MARK: Back-pressure

    /// What a session may always hold, however much the others do; frames up to this size need no room reserved.
    private static let modestBytes = 64 << 10

    /// Whether another frame may be accepted. Where all sessions together hold too much, those that hold little
    /// continue.
    private var hasRoom: Bool {
        guard state.array == nil, state.requestsInFlight < loop.limits.inflightPerSession else { return false }
        let held = state.heldBytes + (state.stream?.pendingOutputBytes ?? 0)
        return held < loop.limits.sessionBytes && (held < Self.modestBytes || sessions.buffers.hasRoom)
    }

    /// Reserves room for a frame of which only a part is there; false if the session has to wait for it.
    private func reserve(_ size: Int) -> Bool {
        if size <= Self.modestBytes || state.reservedBytes > 0 { return true }
        guard sessions.buffers.reserve(size) else {
            state.wantedBytes = size
            return false
        }
        state.reservedBytes = size
        return true
    }

    /// Gives back the room of a frame that is there, or will never be.
    private func releaseReserved() {
        guard state.reservedBytes > 0 || state.wantedBytes > 0 else { return }
        sessions.buffers.release(state.reservedBytes)
        state.reservedBytes = 0
        state.wantedBytes = 0
    }

    private func pause() {
        state.stream?.pause()
        sessions.hasPaused(self)
    }

    /// Resumes reading if what made the session pause is over.
    func resumeReadingIfPossible() -> Bool {
        guard state.phase == .serving, let stream = state.stream else { return true }
        guard hasRoom, state.wantedBytes == 0 || sessions.buffers.hasRoom(for: state.wantedBytes) else { return false }
        stream.resume()
        return true
    }

    func outputDrained(from stream: Stream) {
        state.lastActivity = loop.now
    }

    // MARK: Order

    /// Whether a request may start now; if not, it has to wait.
    ///
    /// - Parameter hasWaited: whether it is the first of those that wait.
    func admits(_ kind: RequestKind, on collection: Collection, hasWaited: Bool) -> Bool {
        state.order.admits(kind, on: collection, hasWaited: hasWaited)
    }

    /// Keeps a frame until the requests before it on its collections are done.
    func enqueue(_ request: WaitingRequest) {
        state.order.enqueue(request)
        charge(requests: 1, bytes: request.text.count)
        sessions.hasWaiting(self)
    }

    /// Counts a request that is in flight.
    func started(_ request: PendingRequest) { count(request, +1) }

    /// Counts a request that is done.
    func ended(_ request: PendingRequest) {
        count(request, -1)
        state.lastActivity = loop.now
        sessions.resumeLater(self)
    }

    private func count(_ request: PendingRequest, _ change: Int) {
        if let collection = request.collection { state.order.count(request.kind, on: collection, change) }
        for collection in request.otherCollections { state.order.count(request.kind, on: collection, change) }
        charge(requests: change * request.weight, bytes: change * request.chargedBytes)
    }

    private func charge(requests: Int, bytes: Int) {
        state.requestsInFlight += requests
        state.heldBytes += bytes
    }

    /// Starts what had to wait for requests that are done.
    func resume() {
        isToBeResumed = false
        while let request = state.order.takeStartable() {
            let text = request.text
            charge(requests: -1, bytes: -text.count)
            execute(frame: text.span, waitedUntil: request.deadline)
        }
        state.order.removeIdle()
        if let array = state.array { resume(array) }
        closeIfFinished()
    }

    /// Fails requests that have waited too long; nothing of them has been applied.
    func expireWaiting() {
        if let array = state.array, array.deadline <= loop.now {
            reject(array, .overdue)
            resume(array)
        }
        while let request = state.order.takeOverdue(at: loop.now) {
            let text = request.text
            charge(requests: -1, bytes: -text.count)
            reject(frame: text.span, .overdue)
        }
    }

    /// Whether a request waits for earlier ones.
    var hasWaiting: Bool { state.array != nil || state.order.hasWaiting }

    // MARK: Batch arrays

    /// Starts a batch array; frames after it wait until its last element has been started.
    func start(_ array: BatchArray) {
        state.array = array
        state.heldBytes += array.text.count
        resume(array)
        if state.array != nil { sessions.hasWaiting(self) }
    }

    private func resume(_ array: BatchArray) {
        startElements(of: array)
        guard array.isStarted else { return }
        state.array = nil
        state.heldBytes -= array.text.count
        finishIfComplete(array)
    }

    // MARK: The end

    func reachedEnd(of stream: Stream) {
        finish()
    }

    func closed(_ stream: Stream) {
        releaseReserved()
        state.phase = .closed
        state.isBehind = false
        state.stream = nil
        sessions.hasClosed(self)
    }

    /// Accepts nothing more, replies to what has been accepted, and closes.
    func finish() {
        guard state.phase == .serving else { return }
        state.phase = .finishing
        closeIfFinished()
    }

    /// Whether every request that has come is done and nothing is left to be sent.
    var isIdle: Bool {
        state.requestsInFlight == 0 && state.array == nil && !state.isBehind
            && (state.stream?.pendingOutputBytes ?? 0) == 0
    }

    /// Whether nothing has come or gone for so long.
    func isIdle(for time: Duration) -> Bool { isIdle && loop.now - state.lastActivity >= time }

    private func closeIfFinished() {
        guard state.phase == .finishing, state.requestsInFlight == 0, state.array == nil else { return }
        state.stream?.closeWhenFlushed()
    }
}
