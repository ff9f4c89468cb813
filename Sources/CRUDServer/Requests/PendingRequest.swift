import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// A request in flight: what its reply needs, and what its session is charged for it.
///
/// It is one object from its start until its backend is done with it, and ``RequestState`` says where it is meanwhile.
/// The reply comes first, and may come earlier where the backend takes too long; only with ``ended()`` the session
/// stops counting it.
class PendingRequest: RequestCompletion {
    final let session: Session
    /// The request's id as it was sent; nil for a notification.
    final let id: [UInt8]?
    /// When it has come, on the loop's clock; nil while its reply is held back, which does not count.
    private var arrival: Duration?
    final private(set) var deadline: Duration
    private let method: Method
    final private(set) var kind: RequestKind
    /// The collection that it uses; nil if it concerns none.
    final let collection: Collection?
    /// Its index among its session's ``ChangeRequests``; nil: it is not one of them.
    final var indexAmongChanges: Int?
    /// Higher than those of all that its session has started before.
    final private(set) var number: UInt64 = 0
    /// How many bytes the session is charged for it.
    final private(set) var chargedBytes: Int
    /// How many of them are for its reply.
    private var grantedBytes: Int
    /// How much of what it is charged for it holds for as long as it follows.
    final private(set) var followingBytes = 0
    final private(set) var state = RequestState.executing
    private let array: BatchArray?
    private let traceParent: TraceParent?
    /// When it was begun, on the loop's clock: by its backend's thread, if that has it; nil where it never was.
    private var begun: Duration?

    /// - Parameters:
    ///   - replyBytes: how much room it has been given for its reply.
    ///   - chargedBytes: what it takes beside that; nil: its text.
    init(
        _ call: borrowing Call, _ kind: RequestKind, on collection: Collection?, replyBytes: Int = 0,
        chargedBytes: Int? = nil
    ) {
        session = call.session
        array = call.array
        id = if let id = call.request.id { call.copy(id) } else { nil }
        arrival = call.arrival
        deadline = call.deadline
        method = call.method
        traceParent = call.traceParent
        grantedBytes = call.array == nil ? replyBytes : 0
        self.chargedBytes = (chargedBytes ?? call.chargedBytes) + grantedBytes
        self.kind = kind
        self.collection = collection
    }

    /// The collections that it uses beside the first.
    var otherCollections: [Collection] { [] }

    /// How many records it names.
    var recordCount: Int { 1 }

    /// The id of the record that it is about, if that is one, and known here.
    var recordID: [UInt8]? { nil }

    /// An error as the peer is told of it: its message names what the request is about.
    final func naming(_ error: CRUDError) -> CRUDError {
        var error = error
        // Who finds records knows no more than the room that there was for them.
        if error.details.limit == "frame_bytes" { error.details.maximum = session.loop.limits.frameBytes }
        guard let collection, otherCollections.isEmpty else { return error }
        guard let recordID else { return error.about(collection: collection.name) }
        return error.about(recordID, in: collection.name)
    }

    /// What the log of slow requests says of it, if it looks for records by what is in them.
    var search: SlowRequest.Search? { nil }

    /// What the audit trail says of it; nil: nothing.
    var audit: AuditEntry.Details? { nil }

    /// As how many requests in flight it counts.
    var weight: Int { 1 }

    /// Whether its reply is part of that to a batch array.
    final var isInArray: Bool { array != nil }

    /// Counts it; to be called before it is handed over.
    final func start() {
        begun = session.loop.now
        number = session.nextRequestNumber()
        session.started(self)
        array?.started(kind, on: collection?.client)
    }

    // MARK: Following

    /// Waits from now on for what others write: neither the room for its reply nor its place in the order of its
    /// session is kept.
    ///
    /// - Parameter bytes: of that room.
    final func follow(givingBack bytes: Int) {
        guard enter(.follows) else { return }
        // What it keeps is charged all the time, or others could exceed the user's share in between.
        let kept = chargedBytes - bytes
        session.charge(requests: 0, bytes: kept)
        session.ended(counting: self)
        kind = .follow
        arrival = nil
        grantedBytes -= bytes
        chargedBytes = kept
        followingBytes = kept
        session.started(self)
        session.charge(requests: 0, bytes: -kept)
        // What it holds leaves room for one request of any size, as what waits does.
        session.account.wait(followingBytes)
    }

    /// Resumes, for there may be something to reply.
    ///
    /// - Parameters:
    ///   - deadline: when that takes too long, on the loop's clock.
    ///   - bytes: how much room the reply needs.
    final func resumeFollowing(until deadline: Duration, needing bytes: Int) {
        guard enter(.wakes(bytes: bytes)) else { return }
        self.deadline = deadline
        arrival = session.loop.now
        number = session.nextRequestNumber()
        session.beginAgainIfThereIsRoom(self)
    }

    // MARK: State

    /// How many bytes more than it was given its reply takes, while it waits for them.
    final var missingBytes: Int { if case .awaitingRoom(let bytes) = state { bytes } else { 0 } }

    /// - Returns: false if that cannot happen now; nothing has changed then.
    private func enter(_ event: RequestState.Event) -> Bool {
        guard let next = state.after(event) else { return false }
        if state == .following { session.account.wait(-followingBytes) }
        state = next
        return true
    }

    // MARK: RequestCompletion

    /// What a peer has sent before it went away is still executed, but reading for nobody is not worthwhile.
    final var isWanted: Bool {
        switch kind {
        case .read, .scan, .follow: session.isWanted
        case .write, .slicedWrite: true
        }
    }

    final func complete(with item: WorkItem, _ range: Range<Int>) {
        begun = item.begun ?? begun
        let result = WorkResult(of: item, range)
        let bytes = bytesMissing(after: result)
        // What comes before it begins again, and it has to stay behind that.
        let isBehind = kind == .read && session.mustBeginAgain(self)
        if bytes > 0 || isBehind {
            if !isBehind { keep(result) }
            return awaitRoom(for: max(bytes, 1))
        }
        charge(extraBytes(of: result))
        if follows(after: result) { return }
        if encodes(result), enter(.encodes) { return }
        reply(with: result)
        hasReplied()
    }

    final func fail(_ error: CRUDError, begun: Duration?, isOverdue: Bool) {
        self.begun = begun
        fail(error, isOverdue: isOverdue)
    }

    final func fail(_ error: CRUDError, isOverdue: Bool) {
        let bytes = isOverdue ? 0 : bytesMissing(after: error)
        if bytes > 0 { return awaitRoom(for: bytes) }
        reply(with: error, isOverdue: isOverdue)
        hasReplied()
    }

    final func ended() {
        // Not where it is executed again, or another thread makes the reply.
        if enter(.ends) { session.ended(self) }
    }

    /// Has another thread make the reply, if that takes long; that calls ``encoded(_:)`` on the loop.
    func encodes(_ result: WorkResult) -> Bool { false }

    /// Follows, if there is nothing to say.
    func follows(after result: WorkResult) -> Bool { false }

    /// Has another thread make the reply again.
    final func encodeAgain(_ begin: () -> Void) {
        if enter(.encodes) { begin() }
    }

    /// Replies what another thread has made, if there is room.
    ///
    /// - Returns: false where it has to be made again once there is: it may be much longer than what was found.
    final func encoded(_ outcome: Result<[UInt8], CRUDError>) -> Bool {
        if case .success(let text) = outcome, !hasRoom(forReply: text.count) {
            awaitRoom(for: text.count - grantedBytes)
            return false
        }
        reply { output throws(CRUDError) in
            switch outcome {
            case .success(let result): output.append(result.span)
            case .failure(let error): throw naming(error)
            }
        }
        hasReplied()
        ended()
        return true
    }

    // MARK: Room

    /// Whether there is room for a reply of so many bytes, which are charged then.
    final func hasRoom(forReply bytes: Int) -> Bool {
        let lacking = bytes - grantedBytes
        if isInArray || lacking <= 0 { return true }
        guard session.hasRoom(for: lacking) else { return false }
        charge(lacking)
        return true
    }

    /// How much more room the reply needs; more than 0 only for what can begin again.
    func bytesMissing(after result: WorkResult) -> Int { 0 }
    func bytesMissing(after error: CRUDError) -> Int { 0 }

    /// How much more than it was given has been found, and there is room for.
    func extraBytes(of result: WorkResult) -> Int { 0 }

    /// Keeps what there was room for of what it has found, so that only the rest is read once there is room for that.
    func keep(_ result: WorkResult) {}

    /// Keeps nothing any more of what it has found: an earlier read begins again, and must not find what is later.
    func forgetFound() {}

    private func charge(_ bytes: Int) {
        guard bytes > 0 else { return }
        chargedBytes += bytes
        grantedBytes += bytes
        session.charge(requests: 0, bytes: bytes)
    }

    /// How much more room a page needs in which not even one record has found room: in an array as much as a record may
    /// take, lest nothing be left for the elements behind it; if that does not suffice either, all there is.
    ///
    /// - Parameter bytes: how much it was given.
    final func bytesMissing(onPageOf bytes: Int, atMost most: Int) -> Int {
        let longestRecord = session.loop.limits.itemBytes + StreamBuffer.recordBytesWithoutItem
        return max(0, (isInArray && bytes < longestRecord ? min(longestRecord, most) : most) - bytes)
    }

    /// Whether another read of the same collection was started before it.
    final func isBehind(_ other: PendingRequest) -> Bool {
        other.number < number && other.kind == .read && other.collection === collection
    }

    /// Whether it may be submitted now.
    final var canBeginAgain: Bool {
        guard let collection else { return true }
        return !collection.isQuiesced && (kind != .read || session.admitsUnfinishedRead(on: collection))
    }

    /// Begins again with the room that was missing, which its session, or the array, has been charged for.
    final func beginAgain() {
        let bytes = missingBytes
        guard enter(.restarts) else { return }
        if !isInArray {
            chargedBytes += bytes
            grantedBytes += bytes
        }
        if let refusal = refusalToBeginAgain {
            reply(with: refusal, isOverdue: false)
            hasReplied()
            return ended()
        }
        submitAgain(withRoomFor: bytes)
    }

    /// Why it must not be executed any more: what it is about has changed while it waited.
    private var refusalToBeginAgain: CRUDError? {
        switch kind {
        case .scan where session.loop.hasEndedSearches: .draining
        case .read, .scan, .write, .slicedWrite: collection?.refusal
        // It replies where it had got to.
        case .follow: nil
        }
    }

    /// Has ``submitAgain(withRoomFor:)`` called, which makes the reply, once there is room for so many bytes more.
    ///
    /// - Parameter deadline: until when that is waited for, on the loop's clock; nil: as long as for the request.
    final func awaitRoom(for bytes: Int, until deadline: Duration? = nil) {
        guard enter(.lacksRoom(bytes: bytes)) else { return }
        self.deadline = deadline ?? self.deadline
        session.awaitRoom(for: self)
    }

    /// Whether nothing has come of it while it awaits room, so that it can be cancelled.
    var canBeWithdrawn: Bool { !isInArray }

    /// The reply where there is no room in time.
    var errorWithoutRoom: CRUDError { .overdue }

    /// Submits it again.
    ///
    /// - Parameter bytes: how much more room there is than before.
    func submitAgain(withRoomFor bytes: Int) {}

    // MARK: Replies

    /// Replies with what a backend has done, if it is what the request has asked for.
    func reply(with result: WorkResult) {
        reply(with: CRUDError(.internalError, "the backend has done something else than was asked for"))
    }

    /// Replies that it has failed.
    func reply(with error: CRUDError, isOverdue: Bool) { reply(with: error) }

    final func reply(with error: CRUDError) {
        let error = naming(error)
        reply { _ throws(CRUDError) in throw error }
    }

    /// Replies, unless the request is a notification.
    ///
    /// - Parameter result: appends the value of `result`, or throws the error to reply instead.
    final func reply(_ result: (inout StreamBuffer) throws(CRUDError) -> Void) {
        func reply(_ output: inout StreamBuffer) throws(CRUDError) -> Bool {
            try result(&output)
            return true
        }
        let outcome =
            if let id { session.reply(to: id.span, in: array, reply) } else { StreamBuffer.outcome(of: reply) }
        guard let outcome else { return }
        let arrival = arrival ?? session.loop.now
        session.count(method, outcome, arrival: arrival)
        if let audit { session.noteAct(method, on: collection?.name, audit, outcome, traceParent) }
        guard let duration = session.loop.slow?.duration(since: arrival) else { return }
        let start = begun ?? arrival + duration
        session.noteSlow(
            SlowRequest(
                method, on: otherCollections.isEmpty ? collection?.name : nil, records: recordCount,
                duration: duration, waited: max(.zero, start - arrival), from: session.origin, traceParent, search))
    }

    /// Counts the reply, also in the array that the request is an element of.
    final func hasReplied() {
        guard enter(.replies) else { return }
        guard let array else { return }
        array.replied()
        session.finishIfComplete(array)
    }
}
