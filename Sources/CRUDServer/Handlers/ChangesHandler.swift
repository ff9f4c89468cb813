import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDStorage
import CRUDWire

/// `collection.changes`.
final class ChangesHandler {
    private let loop: LoopState
    private let queries: QueryHandler

    /// How much room a page is given at least.
    static let leastPageBytes = SessionAccount.modestBytes

    init(_ loop: LoopState, _ queries: QueryHandler) {
        self.loop = loop
        self.queries = queries
    }

    func changes(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        let selection = try queries.selection(call)
        var query = ChangesQuery()
        query.filter = selection.filter
        query.prefix = selection.prefix
        query.limit = try queries.limit(call)
        query.fields = try call.fields
        query.withItems = call[.items]?.kind != .false
        let start = try start(call)
        let wait = try wait(call)
        guard collection.rule.remembersChanges else { throw .changesAreOff }
        guard call.wantsReply else { return }
        guard !loop.hasEndedSearches else { throw .draining }
        let limits = loop.limits
        let most = call.room(limits) - StreamBuffer.responseBytesWithoutItem - (call.request.id?.count ?? 0)
        let bytes = call.grant(pageOfAtLeast: Self.leastPageBytes, atMost: most)
        let request = ChangesTask.Request(
            query, from: start, maximumBytes: bytes, maximumItemBytes: limits.frameBytes,
            timeout: limits.requestTimeout / 2)
        let pending = PendingChanges(call, request, on: collection, maximumBytes: most, until: loop.now + wait)
        pending.start()
        if wait > .zero { call.session.state.changes.insert(pending) }
        pending.submit(in: collection)
    }

    private func start(_ call: borrowing Call) throws(CRUDError) -> ChangesCursor.Start {
        guard let after = call[.after] else { return .beginning }
        let text = call.decode(after)
        if text.elementsEqual("start".utf8) { return .beginning }
        if text.elementsEqual("now".utf8) { return .now }
        return .sealed(try SealedCursor(text: text))
    }

    /// How long the reply may be held back. The elements of an array are not: those behind them would wait.
    private func wait(_ call: borrowing Call) throws(CRUDError) -> Duration {
        guard let wait = call[.wait], call.array == nil else { return .zero }
        return .milliseconds(
            try Parameter.wait.milliseconds(
                wait, call.text.span, atMost: DefaultLimits.waitSeconds, isPositive: false))
    }
}

/// A `collection.changes` in flight: a page is being found, or it waits for one among the loop's ``Followers``.
///
/// While it waits it keeps what was asked for, and no page.
final class PendingChanges: PendingRequest, Follower, ChangeRequest {
    var position: Followers.Position?
    /// Whether its client has cancelled it: it does not wait, or no longer.
    private var isCancelled = false
    /// Why it may not wait, although there is nothing to say.
    private var refusal: CRUDError?
    private var request: ChangesTask.Request
    private let maximumBytes: Int
    /// Until when the reply may be held back, on the loop's clock.
    private let waitEnd: Duration
    /// Until when it is held back for records that are still being added to the feed.
    private var completionEnd: Duration?
    /// The page that had nothing to say.
    private var last = LastPage()
    /// The collection as it was when that was found.
    private var followed: BackendCollection?

    private struct LastPage {
        /// Where it ended.
        var place = ChangesCursor()
        /// The feed that it was a page of; nil: the collection was not there.
        var feed: ChangeFeed?
        /// Whether all records had been added to the feed.
        var isComplete = true
        /// How many changes that had had.
        var changes: UInt64 = 0
        /// How many feeds of the backend had been opened.
        var openings: UInt64 = 0
    }

    override var search: SlowRequest.Search? { .init(request.query.filter) }

    private static let completionTimeout = Duration.seconds(1)
    /// What one takes beside its text and what that is decoded to.
    private static let ownBytes = 1024

    /// - Parameters:
    ///   - maximumBytes: how long the result may be.
    ///   - end: until when the reply may be held back.
    init(
        _ call: borrowing Call, _ request: ChangesTask.Request, on collection: Collection, maximumBytes: Int,
        until end: Duration
    ) {
        self.request = request
        self.maximumBytes = maximumBytes
        waitEnd = end
        super.init(
            call, .scan, on: collection, replyBytes: request.maximumBytes,
            chargedBytes: call.chargedBytesOfSelection + Self.ownBytes)
    }

    func submit(in collection: Collection) {
        followed = collection.stored
        let task = ChangesTask(
            request, in: collection.stored, collection.backend.feeds, deliver: collection.client.deliver)
        collection.client.submit(task, for: self)
    }

    // MARK: Following

    override func follows(after result: WorkResult) -> Bool {
        guard case .changes(let task) = result, task.changes.isEmpty, task.corrupt.isEmpty, !task.hasMore else {
            return false
        }
        let loop = session.loop
        last = LastPage(
            place: task.cursor, feed: task.feed, isComplete: task.isComplete, changes: task.changesBefore,
            openings: task.openings)
        if !task.isComplete, completionEnd == nil { completionEnd = loop.now + Self.completionTimeout }
        guard waitDeadline > loop.now, !loop.isDraining, !session.isClosing, !isInArray, !isCancelled, isWanted,
            canBeginAgain, isServed
        else { return false }
        refusal = session.refusal(ofFollower: self, holding: chargedBytes - request.maximumBytes)
        guard refusal == nil else { return false }
        request.start = .cursor(task.cursor)
        follow(givingBack: request.maximumBytes)
        request.maximumBytes = 0
        loop.followers.add(self)
        return true
    }

    var waitDeadline: Duration { last.isComplete ? waitEnd : completionEnd ?? waitEnd }

    /// Where there is no feed the backend's feeds stand for it: any of them may be that of the collection.
    var topic: ObjectIdentifier {
        if let feed = last.feed { return ObjectIdentifier(feed) }
        return collection.map { ObjectIdentifier($0.backend) } ?? ObjectIdentifier(session)
    }

    var topicState: Followers.TopicState {
        let (backend, feed) = (collection?.backend, last.feed)
        return Followers.TopicState(
            isStorageDown: backend?.isStorageDown ?? true, openings: feed == nil ? backend?.feeds.openings ?? 0 : 0,
            isOpen: feed?.isOpen ?? false, changes: feed?.changes ?? 0, isComplete: feed?.isComplete ?? false)
    }

    var isDue: Bool {
        guard let collection, !collection.backend.isStorageDown else { return true }
        // A collection that is not there is looked for again whenever one has been opened.
        guard let feed = last.feed else { return collection.backend.feeds.openings != last.openings }
        return !feed.isOpen || feed.changes != last.changes || feed.isComplete != last.isComplete
    }

    var isCutShort: Bool { last.feed?.isOpen == false }

    var isServed: Bool {
        guard let collection, collection.refusal == nil, collection.stored === followed else { return false }
        let name = collection.name
        return session.loop.service.rules.rule(for: name.span)?.remembersChanges == true
            && session.authority.permissions(for: collection).contains(.read)
    }

    func await(onLoop number: Int) { last.feed?.await(onLoop: number) }

    func resume() {
        resumeFollowing(until: session.loop.deadline, needing: min(ChangesHandler.leastPageBytes, maximumBytes))
    }

    override func submitAgain(withRoomFor bytes: Int) {
        request.maximumBytes += bytes
        // Woken, it may have waited for room through a reload, or the end of all searches.
        guard kind != .follow || isServed && !session.loop.hasEndedSearches else { return replyEmpty() }
        if let collection { submit(in: collection) }
    }

    func cancel() {
        isCancelled = true
        endWait()
    }

    func endWait() { session.loop.followers.end(self) }

    func replyEmpty() {
        reply { output in
            output.append(#"{"changes":[],"cursor":""#)
            output.append(SealedCursor(last.place).text.span)
            output.append(last.isComplete ? #"","more":false}"# : #"","more":true}"#)
        }
        hasReplied()
        ended()
    }

    // MARK: Replies

    override func reply(with result: WorkResult) {
        guard case .changes(let task) = result else { return super.reply(with: result) }
        if let refusal { return reply(with: refusal) }
        reply { output in
            output.append(#"{"changes":["#)
            output.append(task.changes.span)
            output.append(#"],"cursor":""#)
            output.append(SealedCursor(task.cursor).text.span)
            output.append(task.hasMore || !task.isComplete ? #"","more":true"# : #"","more":false"#)
            if !task.corrupt.isEmpty {
                output.append(#","corrupt":"#)
                var writer = JSONWriter()
                writer.array { ids in for id in task.corrupt { ids.string(utf8: id) } }
                output.append(writer.bytes.span)
            }
            output.append("}")
        }
    }

    /// Not even one change may have found room.
    override func bytesMissing(after error: CRUDError) -> Int {
        error.code == .limitExceeded ? bytesMissing(onPageOf: request.maximumBytes, atMost: maximumBytes) : 0
    }
}
