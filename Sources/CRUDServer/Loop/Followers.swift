import CRUDEventLoop
import CRUDThreads

/// A request that waits for a collection to change.
protocol Follower: AnyObject {
    /// Where it is among those that wait; nil: it does not.
    var position: Followers.Position? { get set }
    /// What it follows.
    var topic: ObjectIdentifier { get }
    /// How that is now. Only where it has changed, a request may have become due.
    var topicState: Followers.TopicState { get }
    /// Whether its collection may be read now.
    var canBeginAgain: Bool { get }
    /// Whether there may be something to say.
    var isDue: Bool { get }
    /// Whether its collection is served as it was, and its peer may read it.
    var isServed: Bool { get }
    /// Whether what it follows has been closed: the collection was dropped or moved, or its backend was lost.
    var isCutShort: Bool { get }
    /// Until when it waits.
    var waitDeadline: Duration { get }

    /// Has the loop told of the next change.
    func await(onLoop number: Int)
    /// Looks for changes again.
    func resume()
    /// Replies that there is nothing to say.
    func replyEmpty()
}

/// The requests of one event loop that wait for a collection to change.
///
/// A request asks the feed of its collection to tell the loop of the next change, and looks afterwards whether there
/// has been one already; so none is missed. Whatever the loop is told, it is the feeds that say which requests are due.
/// When the place of a collection is exchanged, the backend is lost or the daemon stops, all are replied to at once.
///
/// There may be hundreds of thousands. One comes and goes in constant time; a change of one collection costs nothing to
/// those that follow another; and their times end together, in slots of some milliseconds.
final class Followers {
    /// Where a request is among those of its topic, and of its slot of time.
    struct Position {
        fileprivate let topic: ObjectIdentifier
        fileprivate var index: Int
        fileprivate let slot: Int64
        fileprivate var indexInSlot: Int
    }

    /// How a topic is: a feed, or the backend of a collection that is not there.
    struct TopicState: Equatable {
        var isStorageDown: Bool
        /// How many feeds of the backend have been opened.
        var openings: UInt64
        var isOpen: Bool
        /// How many changes it has had.
        var changes: UInt64
        var isComplete: Bool
    }

    private struct Topic {
        var members: [any Follower] = []
        /// How it was when all members were last asked whether they are due; nil: one may be.
        var state: TopicState?
    }

    private let eventLoop: EventLoop
    private var topics: [ObjectIdentifier: Topic] = [:]
    /// Those whose time ends within a slot, by its number.
    private var slots: [Int64: [any Follower]] = [:]
    private lazy var timer = Timer(on: eventLoop) { [unowned self] in expire() }
    /// When the timer fires; nil: it does not.
    private var timerDeadline: Duration?
    /// Whether some may be due.
    private var mustLook = false
    private let loopNumber: Int
    /// How many wait.
    private(set) var count = 0

    private static let slotMilliseconds: Int64 = 32

    init(on eventLoop: EventLoop, number: Int) {
        self.eventLoop = eventLoop
        loopNumber = number
    }

    func add(_ request: any Follower) {
        let topic = request.topic
        let slot = request.waitDeadline.milliseconds / Self.slotMilliseconds + 1
        request.position = Position(
            topic: topic, index: topics[topic]?.members.count ?? 0, slot: slot, indexInSlot: slots[slot]?.count ?? 0)
        topics[topic, default: Topic()].members.append(request)
        slots[slot, default: []].append(request)
        count += 1
        request.await(onLoop: loopNumber)
        if request.isDue {
            topics[topic]?.state = nil
            mustLook = true
        }
        schedule(slot)
    }

    /// Forgets one that waits.
    private func remove(_ request: any Follower) {
        guard let position = request.position else { return }
        request.position = nil
        count -= 1
        if let last = topics[position.topic, default: Topic()].members.popLast(), last !== request {
            topics[position.topic, default: Topic()].members[position.index] = last
            last.position?.index = position.index
        }
        if topics[position.topic]?.members.isEmpty ?? true { topics[position.topic] = nil }
        if let last = slots[position.slot, default: []].popLast(), last !== request {
            slots[position.slot, default: []][position.indexInSlot] = last
            last.position?.indexInSlot = position.indexInSlot
        }
        if slots[position.slot]?.isEmpty ?? true { slots[position.slot] = nil }
    }

    /// Notes that collections have changed, or are there no more.
    func noteChange() { mustLook = true }

    /// Has those look again whose collection has changed; called in each iteration.
    func resume() {
        guard mustLook else { return }
        mustLook = false
        var due: [any Follower] = []
        for key in Array(topics.keys) {
            guard let first = topics[key]?.members.first else { continue }
            // Before they are asked, so that a change in between is not missed.
            first.await(onLoop: loopNumber)
            let state = first.topicState
            guard topics[key]?.state != state else { continue }
            topics[key]?.state = state
            due += topics[key]?.members.filter(\.isDue) ?? []
        }
        for request in due { remove(request) }
        for request in due {
            if request.isCutShort { request.replyEmpty() } else { request.resume() }
        }
    }

    /// Replies to one, if it waits.
    func end(_ request: any Follower) {
        guard request.position != nil else { return }
        remove(request)
        request.replyEmpty()
    }

    /// Replies to those whose collection is about to be exchanged.
    func endQuiesced() { end { !$0.canBeginAgain } }

    /// Replies to those that a reload has taken their collection or their access from.
    func endUnserved() { end { !$0.isServed } }

    /// Replies to all.
    func endAll() { end { _ in true } }

    private func end(where isOver: (any Follower) -> Bool) {
        for request in topics.values.flatMap({ $0.members.filter(isOver) }) { end(request) }
    }

    // MARK: Time

    private func schedule(_ slot: Int64) {
        let deadline = Duration.milliseconds(slot * Self.slotMilliseconds)
        if let timerDeadline, timerDeadline <= deadline { return }
        timerDeadline = deadline
        timer.schedule(after: max(.zero, deadline - eventLoop.now))
    }

    private func expire() {
        timerDeadline = nil
        let current = eventLoop.now.milliseconds / Self.slotMilliseconds
        for slot in slots.keys.filter({ $0 <= current }) {
            for request in slots[slot] ?? [] { end(request) }
        }
        if let next = slots.keys.min() { schedule(next) }
    }
}
