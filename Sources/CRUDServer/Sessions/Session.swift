import CRUDConfiguration
import CRUDCore
import CRUDEventLoop
import CRUDModel
import CRUDWire

/// One connection: cuts its bytes into frames, keeps the order of effect, and bounds what its peer can make the daemon
/// hold.
///
/// **Order.** Frames are taken up in the order they come. A request that has to wait for earlier ones on its collection
/// goes to that collection's ``Lane``; a batch array that cannot be started to its end holds back the frames after it.
///
/// **Bounds.** The session is not read from while it has too many requests under way, or while what it holds, its
/// own requests and the replies its peer does not read, is too much. It is back-pressure, not an error: the peer's own
/// socket fills.
///
/// **Ends.** After its peer has shut down its writing side, or has sent a frame that is too long, a session still
/// answers what it has taken up and then closes.
final class Session: StreamHandler {
    private enum Phase {
        /// Frames are taken up.
        case serving
        /// Nothing more is taken up; the session closes when all is answered.
        case finishing
        case closed
    }

    let peer: Peer
    /// What the peer may do by the access rules that are in force.
    // Not checked for exclusive access at run time, as the dispatcher's `request`.
    @exclusivity(unchecked) var authority: Authority
    // The loop owns its sessions and outlives them.
    private unowned(unsafe) let loop: ServiceLoop
    /// Set right after the session is made: a stream needs its handler first.
    private(set) var stream: Stream?
    private var phase = Phase.serving
    private var lanes: [Lane] = []
    private var array: ArrayExecution?
    /// Requests that have been taken up and not been answered.
    private var requestsUnderWay = 0
    /// Whether some have ended since ``goOn()``.
    private(set) var hasEnded = false
    /// Bytes of requests that wait or are under way.
    private var heldBytes = 0
    /// Room that is kept for a frame that is still coming in.
    private var reservedBytes = 0
    /// Room that such a frame waits for.
    private var wantedBytes = 0
    /// When something last came or went, on the loop's clock.
    private(set) var lastActivity: Duration
    /// What the session has had carried out, and in which turn.
    private var workDone = 0
    private var turnOfWork: UInt64 = 0
    /// Whether there are frames that have come and not been taken up.
    private var isBehind = false

    /// How much a session may have carried out in one turn, and how many bytes it may be answered, so that no session
    /// keeps a turn to itself. A frame counts as sixteen, an element of an array or an id of many as one.
    private static let workPerTurn = 1024
    private static let workOfFrame = 16
    private static let replyBytesPerTurn = 1 << 20

    init(peer: Peer, authority: Authority, loop: ServiceLoop) {
        self.peer = peer
        self.authority = authority
        self.loop = loop
        lastActivity = loop.now
    }

    /// Takes over a connected socket.
    func serve(_ descriptor: CInt, on eventLoop: EventLoop) throws(SystemCallError) {
        stream = try Stream(descriptor, on: eventLoop, handler: self)
    }

    // MARK: Frames

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        lastActivity = loop.now
        isBehind = false
        var consumed = 0
        let enoughOutput = stream.pendingOutputBytes + Self.replyBytesPerTurn
        while phase == .serving, bytes.count - consumed >= FrameHeader.size {
            let length = FrameHeader.length(bytes.extracting(consumed...))
            guard length <= loop.limits.frameBytes else {
                refuseFrame()
                break
            }
            let end = consumed + FrameHeader.size + length
            guard end <= bytes.count else {
                if reserve(end - consumed) { stream.expects(totalBytes: end - consumed) } else { pause() }
                break
            }
            release()
            guard hasRoom else {
                isBehind = true
                pause()
                break
            }
            guard !hasHadItsShare, stream.pendingOutputBytes < enoughOutput else {
                isBehind = true
                stream.continueNextTurn()
                break
            }
            spend(Self.workOfFrame)
            loop.dispatcher.carryOut(frame: bytes.extracting(consumed + FrameHeader.size..<end), from: self)
            consumed = end
        }
        // What comes after the last frame that is taken up is not kept.
        return phase == .serving ? consumed : bytes.count
    }

    /// A frame that is too long ends the session: where the next one begins is a gigabyte away, or nowhere.
    private func refuseFrame() {
        let maximum = loop.limits.frameBytes
        answer(
            CRUDError(
                .limitExceeded, "the frame is longer than \(maximum) bytes",
                details: .init(limit: "frame_bytes", maximum: maximum)))
        finish()
    }

    /// Answers something that has no id.
    func answer(_ error: CRUDError) {
        loop.reply.error(error)
        send()
    }

    /// Sends the response that the loop's reply writer holds.
    func send() {
        guard let stream else { return }
        loop.reply.moveFrame(to: &stream.output)
    }

    // MARK: Fairness

    /// Charges work to the session's share of this turn.
    func spend(_ work: Int) {
        if turnOfWork != loop.turnNumber {
            turnOfWork = loop.turnNumber
            workDone = 0
        }
        workDone += work
    }

    /// Whether the session has to leave the rest of this turn to others.
    var hasHadItsShare: Bool { turnOfWork == loop.turnNumber && workDone >= Self.workPerTurn }

    // MARK: Back-pressure

    /// What a session may always hold, however much the others do; frames up to this size need no room reserved.
    private static let modestBytes = 64 << 10

    /// Whether another frame may be taken up. Where all sessions together hold too much, those that hold little go on.
    private var hasRoom: Bool {
        guard array == nil, requestsUnderWay < loop.limits.inflightPerSession else { return false }
        let held = heldBytes + (stream?.pendingOutputBytes ?? 0)
        return held < loop.limits.sessionBytes && (held < Self.modestBytes || loop.buffers.hasRoom)
    }

    /// Reserves room for a frame of which only a part is there; false if the session has to wait for it.
    private func reserve(_ size: Int) -> Bool {
        if size <= Self.modestBytes || reservedBytes > 0 { return true }
        guard loop.buffers.reserve(size) else {
            wantedBytes = size
            return false
        }
        reservedBytes = size
        return true
    }

    /// Gives back the room of a frame that is there, or will never be.
    private func release() {
        guard reservedBytes > 0 || wantedBytes > 0 else { return }
        loop.buffers.release(reservedBytes)
        reservedBytes = 0
        wantedBytes = 0
    }

    private func pause() {
        stream?.pause()
        loop.hasPaused(self)
    }

    /// Goes on reading if what made the session pause is over.
    func resumeIfPossible() -> Bool {
        guard phase == .serving, let stream else { return true }
        guard hasRoom, wantedBytes == 0 || loop.buffers.hasRoom(for: wantedBytes) else { return false }
        stream.resume()
        return true
    }

    func outputDrained(from stream: Stream) {
        lastActivity = loop.now
    }

    // MARK: Order

    /// Whether a request may start now; if not, the caller has it wait.
    ///
    /// - Parameter hasWaited: whether it is the first of those that wait, whose turn has come.
    func admits(_ kind: RequestKind, on collection: Collection, hasWaited: Bool) -> Bool {
        guard let index = lane(of: collection) else { return !collection.isHeld }
        return (hasWaited || lanes[index].waiting.isEmpty) && lanes[index].admits(kind)
    }

    /// Keeps a frame until the requests before it on its collections have been carried out.
    func wait(_ text: Span<UInt8>, for collections: [Collection], _ kind: RequestKind) {
        let waiting = WaitingRequest(
            text: text.copy(), deadline: loop.dispatcher.deadline, kind: kind, collections: collections)
        for collection in collections {
            lanes[makeLane(for: collection)].waiting.append(waiting)
            collection.requestsUnderWay += 1
        }
        requestsUnderWay += 1
        heldBytes += waiting.text.count
        loop.isWaiting(self)
    }

    /// Counts a request that has been handed to a backend.
    func started(_ context: RequestContext) {
        count(context, on: context.collection, +1)
        for collection in context.otherCollections { count(context, on: collection, +1) }
        requestsUnderWay += context.weight
        heldBytes += context.heldBytes
    }

    /// Counts a request that a backend has given back. ``goOn()`` is to follow when all that came with it are counted.
    func ended(_ context: RequestContext) {
        hasEnded = true
        count(context, on: context.collection, -1)
        for collection in context.otherCollections { count(context, on: collection, -1) }
        requestsUnderWay -= context.weight
        heldBytes -= context.heldBytes
        lastActivity = loop.now
    }

    /// Counts a request without a collection that somebody has in hand.
    func started(holding bytes: Int) {
        requestsUnderWay += 1
        heldBytes += bytes
    }

    /// Counts such a request that has been answered.
    func ended(holding bytes: Int) {
        requestsUnderWay -= 1
        heldBytes -= bytes
        lastActivity = loop.now
    }

    private func count(_ context: RequestContext, on collection: Collection, _ change: Int) {
        lanes[makeLane(for: collection)].count(context.kind, change)
        collection.requestsUnderWay += change
    }

    /// Counts a request that has been answered, or needs no answer, so that its batch array gets on.
    func answered(_ context: RequestContext) { answered(to: context.target) }

    /// The same for a request that went to this target.
    func answered(to target: ReplyTarget) {
        guard case .array(let array) = target else { return }
        array.ended()
        if array.isFinished { finish(array) }
    }

    /// Takes up what had to wait for requests that have ended.
    func goOn() {
        hasEnded = false
        // What starts on one lane may be what others have waited for.
        while startWaiting() {}
        lanes.removeAll(where: \.isIdle)
        if let array { carryOn(array) }
        closeIfFinished()
    }

    /// Starts what may start; false if that is nothing.
    private func startWaiting() -> Bool {
        var hasStarted = false
        // A lane that a request adds meanwhile has nothing waiting.
        for index in lanes.indices {
            while let first = lanes[index].waiting.first, mayStart(first) {
                stopWaiting(first)
                let text = first.text
                loop.dispatcher.carryOut(frame: text.span, from: self, waitedUntil: first.deadline)
                hasStarted = true
            }
        }
        return hasStarted
    }

    private func mayStart(_ request: WaitingRequest) -> Bool {
        request.collections.allSatisfy { collection in
            guard let index = lane(of: collection) else { return true }
            return lanes[index].waiting.first === request && lanes[index].admits(request.kind)
        }
    }

    private func stopWaiting(_ request: WaitingRequest) {
        for collection in request.collections {
            if let index = lane(of: collection) { lanes[index].waiting.removeAll { $0 === request } }
            collection.requestsUnderWay -= 1
        }
        requestsUnderWay -= 1
        heldBytes -= request.text.count
    }

    /// Answers requests that have waited too long; nothing of them has been applied.
    func expireWaiting() {
        if let array, array.deadline <= loop.now {
            loop.dispatcher.refuse(overdue: array, from: self)
            carryOn(array)
        }
        for index in lanes.indices {
            while let first = lanes[index].waiting.first, first.deadline <= loop.now {
                stopWaiting(first)
                let text = first.text
                loop.dispatcher.refuse(overdue: text.span, from: self)
            }
        }
    }

    /// Whether a request waits for its turn.
    var hasWaiting: Bool { array != nil || lanes.contains { !$0.waiting.isEmpty } }

    private func lane(of collection: Collection) -> Int? {
        lanes.firstIndex { $0.collection === collection }
    }

    private func makeLane(for collection: Collection) -> Int {
        if let index = lane(of: collection) { return index }
        lanes.append(Lane(collection: collection))
        return lanes.count - 1
    }

    // MARK: Batch arrays

    /// Takes up a batch array; frames after it wait until its last element has been started.
    func carryOut(_ array: ArrayExecution) {
        self.array = array
        heldBytes += array.text.count
        carryOn(array)
        if self.array != nil { loop.isWaiting(self) }
    }

    private func carryOn(_ array: ArrayExecution) {
        loop.dispatcher.carryOn(array, from: self)
        guard array.next == array.elements.count else { return }
        self.array = nil
        heldBytes -= array.text.count
        if array.isFinished { finish(array) }
    }

    /// Sends the answer to an array whose elements have all been answered.
    private func finish(_ array: ArrayExecution) {
        guard let stream else { return }
        if array.isTooLong { return answer(loop.dispatcher.replyTooLong) }
        array.finish(into: &stream.output)
    }

    // MARK: The end

    func reachedEnd(of stream: Stream) {
        finish()
    }

    func closed(_ stream: Stream) {
        release()
        phase = .closed
        isBehind = false
        self.stream = nil
        loop.hasClosed(self)
    }

    /// Whether anybody may read an answer. What a peer has sent before it went away is still carried out, but reading for
    /// nobody is not worth the while.
    var isListenedTo: Bool { stream?.isHungUp == false }

    /// Takes up nothing more, answers what is under way, and closes.
    func finish() {
        guard phase == .serving else { return }
        phase = .finishing
        closeIfFinished()
    }

    /// Whether all that has come is answered and nothing is left to be sent.
    var isQuiet: Bool {
        requestsUnderWay == 0 && array == nil && !isBehind && (stream?.pendingOutputBytes ?? 0) == 0
    }

    private func closeIfFinished() {
        guard phase == .finishing, requestsUnderWay == 0, array == nil else { return }
        stream?.closeWhenFlushed()
    }
}

extension Span<UInt8> {
    /// The bytes in memory of their own.
    func copy() -> [UInt8] {
        withUnsafeBufferPointer { Array($0) }
    }
}
