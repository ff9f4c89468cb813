import CRUDEventLoop
import CRUDStorage

/// The requests of one event loop that wait for a collection to change.
///
/// A request asks the feed of its collection to tell the loop of the next change, and looks afterwards whether there
/// has been one already; so none is missed. Whatever the loop is told, it is the feeds that say which requests are due.
/// When the place of a collection is exchanged, the backend is lost or the daemon stops, all are replied to at once.
final class Followers {
    private let eventLoop: EventLoop
    private var waiting: [PendingChanges] = []
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

    func add(_ request: PendingChanges) {
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
        var due: [PendingChanges] = []
        waiting.removeAll { request in
            // First this: what changes from now on is told.
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

    /// Replies to all.
    func endAll() { end { _ in true } }

    /// Forgets those of a session that has been closed.
    func end(of session: Session) { end { $0.session === session } }

    private func end(where isOver: (PendingChanges) -> Bool) {
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
