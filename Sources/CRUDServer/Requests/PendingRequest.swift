import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// A request in flight: what its reply needs, and what its session is charged for it.
///
/// It is one object from its start until its backend is done with it. The reply comes first, and may come earlier where
/// the backend takes too long; only with ``ended()`` the session stops counting it.
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
    /// Higher than those of all that its session has started before.
    final private(set) var number: UInt64 = 0
    /// How many bytes the session is charged for it.
    final private(set) var chargedBytes: Int
    /// How much of that it holds for as long as it follows.
    final private(set) var followingBytes = 0
    /// How much more room its reply needs than it was given; it has to begin again with that.
    final private(set) var missingBytes = 0
    /// Whether another thread is making the reply.
    private var isBeingMade = false
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
        self.chargedBytes = (chargedBytes ?? call.chargedBytes) + (call.array == nil ? replyBytes : 0)
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
        session.ended(counting: self)
        kind = .follow
        arrival = nil
        chargedBytes -= bytes
        followingBytes = chargedBytes
        session.started(self)
    }

    /// Resumes, for there may be something to reply.
    ///
    /// - Parameters:
    ///   - deadline: when that takes too long, on the loop's clock.
    ///   - bytes: how much room the reply needs.
    final func resumeFollowing(until deadline: Duration, needing bytes: Int) {
        self.deadline = deadline
        arrival = session.loop.now
        number = session.nextRequestNumber()
        missingBytes = bytes
        isBeingMade = false
        session.beginAgainIfThereIsRoom(self)
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
        missingBytes = bytesMissing(after: item, range)
        if missingBytes == 0, kind == .read, session.mustBeginAgain(self) { missingBytes = 1 }
        guard missingBytes == 0 else { return session.awaitRoom(for: self) }
        isBeingMade = isRepliedLater(with: item, range)
        guard !isBeingMade else { return }
        reply(with: item, range)
        hasReplied()
    }

    final func fail(_ error: CRUDError, of item: WorkItem, _ range: Range<Int>, isOverdue: Bool) {
        begun = item.begun
        guard let batch = item as? MutationBatch, range.count == 1, let mutation = batch.mutations[range].first else {
            return fail(error, isOverdue: isOverdue)
        }
        let error = error.about(batch.arena.bytes(mutation.id), in: mutation.collection.name)
        fail(error, isOverdue: isOverdue)
    }

    final func fail(_ error: CRUDError, isOverdue: Bool) {
        missingBytes = isOverdue ? 0 : bytesMissing(after: error)
        guard missingBytes == 0 else { return session.awaitRoom(for: self) }
        reply(with: error, isOverdue: isOverdue)
        hasReplied()
    }

    final func ended() {
        if missingBytes == 0, !isBeingMade { session.ended(self) }
    }

    /// Whether another thread makes the reply. It ends the request when it is there.
    func isRepliedLater(with item: WorkItem, _ range: Range<Int>) -> Bool { false }

    // MARK: Room

    /// How much more room the reply needs; more than 0 only for what can begin again.
    func bytesMissing(after item: WorkItem, _ range: Range<Int>) -> Int { 0 }
    func bytesMissing(after error: CRUDError) -> Int { 0 }

    /// How much more room a page needs in which not even one record has found room: in an array as much as a record may
    /// take, lest nothing be left for the elements behind it; if that does not suffice either, all there is.
    ///
    /// - Parameter bytes: how much it was given.
    final func bytesMissing(onPageOf bytes: Int, atMost most: Int) -> Int {
        let longestRecord = session.loop.limits.itemBytes + StreamBuffer.recordBytesWithoutItem
        return max(0, (isInArray && bytes < longestRecord ? min(longestRecord, most) : most) - bytes)
    }

    /// Whether it may be submitted now.
    final var canBeginAgain: Bool {
        guard let collection else { return true }
        return !collection.isQuiesced && (kind != .read || session.admitsUnfinishedRead(on: collection))
    }

    /// Begins again with the room that was missing, which its session, or the array, has been charged for.
    final func beginAgain() {
        let bytes = missingBytes
        if !isInArray { chargedBytes += bytes }
        missingBytes = 0
        submitAgain(withRoomFor: bytes)
    }

    /// Has ``submitAgain(withRoomFor:)`` called, which makes the reply, once there is room for it.
    final func awaitRoom(for bytes: Int) {
        missingBytes = bytes
        session.awaitRoom(for: self)
    }

    /// Submits it again.
    ///
    /// - Parameter bytes: how much more room there is than before.
    func submitAgain(withRoomFor bytes: Int) {}

    // MARK: Replies

    /// Replies with what a backend has done.
    func reply(with item: WorkItem, _ range: Range<Int>) {}

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
                duration: duration, waited: max(.zero, start - arrival), of: session, traceParent, search))
    }

    /// Counts the reply in the array that the request is an element of.
    final func hasReplied() {
        guard let array else { return }
        array.replied()
        session.finishIfComplete(array)
    }
}
