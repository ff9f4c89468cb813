import CRUDEventLoop

/// A request that waits for a collection to change.
protocol Follower: AnyObject {
    /// Whether anybody still waits for the reply.
    var isWanted: Bool { get }
    /// Whether its session accepts nothing more and ends when it has been replied to.
    var isClosing: Bool { get }
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
final class Followers {
    private let eventLoop: EventLoop
    private var waiting: [any Follower] = []
    private lazy var timer = Timer(on: eventLoop) { [unowned self] in expire() }
    /// When the timer fires; nil: it does not.
    private var timerDeadline: Duration?
    /// Whether some may be due.
    private var mustLook = false
    private let loopNumber: Int

    init(on eventLoop: EventLoop, number: Int) {
        self.eventLoop = eventLoop
        loopNumber = number
    }

    /// How many wait.
    var count: Int { waiting.count }

    func add(_ request: any Follower) {
        waiting.append(request)
        request.await(onLoop: loopNumber)
        if request.isDue { mustLook = true }
        schedule(at: request.waitDeadline)
    }

    /// Notes that collections have changed, or are there no more.
    func noteChange() { mustLook = true }

    /// Has those look again whose collection has changed; called in each iteration.
    func resume() {
        guard mustLook else { return }
        mustLook = false
        var due: [any Follower] = []
        waiting.removeAll { request in
            // Before it is asked, so that a change in between is not missed.
            request.await(onLoop: loopNumber)
            let isDue = request.isDue
            if isDue { due.append(request) }
            return isDue
        }
        for request in due {
            if request.isCutShort { request.replyEmpty() } else { request.resume() }
        }
    }

    /// Replies to those whose collection is about to be exchanged.
    func endQuiesced() { end { !$0.canBeginAgain } }

    /// Replies to those that a reload has taken their collection or their access from.
    func endUnserved() { end { !$0.isServed } }

    /// Replies to those whose session ends.
    func endClosing() { end { $0.isClosing } }

    /// Replies to all.
    func endAll() { end { _ in true } }

    /// Forgets those whose session has been closed.
    func endUnwanted() { end { !$0.isWanted } }

    private func end(where isOver: (any Follower) -> Bool) {
        let over = waiting.filter(isOver)
        guard !over.isEmpty else { return }
        waiting.removeAll(where: isOver)
        for request in over { request.replyEmpty() }
    }

    // MARK: Time

    private func schedule(at deadline: Duration) {
        if let timerDeadline, timerDeadline <= deadline { return }
        timerDeadline = deadline
        timer.schedule(after: max(.zero, deadline - eventLoop.now))
    }

    private func expire() {
        timerDeadline = nil
        let now = eventLoop.now
        end { $0.waitDeadline <= now }
        if let next = waiting.map(\.waitDeadline).min() { schedule(at: next) }
    }
}
