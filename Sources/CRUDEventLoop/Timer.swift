/// Calls a closure once, when its time has come; can be set again as often as one likes.
///
/// Bound to its loop's thread. A timer that is set is kept alive by the loop; the closure should hold what it needs
/// weakly where that holds the timer in turn.
package final class Timer {
    private let loop: EventLoop
    private let action: () -> Void

    /// When it is due, on the loop's clock, and the turn-taking among timers due at one time.
    fileprivate var deadline: Duration = .zero
    fileprivate var ticket: UInt64 = 0

    /// Where in the heap it stands; nil while it is not set.
    fileprivate var position: Int?

    package init(on loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    package var isScheduled: Bool { position != nil }

    /// Sets the timer, or sets it anew if it is set already.
    ///
    /// It fires once, at the first turn that begins `delay` or more after the present one has (``EventLoop/now``),
    /// never before and up to a millisecond later when the loop is idle. Timers fire in the order of their deadlines;
    /// those with equal ones in the order in which they were set.
    package func schedule(after delay: Duration) {
        cancel()
        deadline = loop.now + max(delay, .zero)
        loop.timers.insert(self)
    }

    /// Unsets the timer. It will not fire, not even if it is due in this very turn; does nothing if it is not set.
    package func cancel() {
        loop.timers.remove(self)
    }

    func fire() {
        action()
    }
}

/// The timers that are set, as a binary heap: the earliest stands first, and each knows its place.
struct TimerHeap {
    private var timers: [Timer] = []
    private(set) var nextTicket: UInt64 = 0

    /// When the next timer is due; nil if none is set.
    var earliestDeadline: Duration? { timers.first?.deadline }

    mutating func insert(_ timer: Timer) {
        timer.ticket = nextTicket
        nextTicket += 1
        timers.append(timer)
        rise(timer, from: timers.count - 1)
    }

    mutating func remove(_ timer: Timer) {
        guard let gap = timer.position else { return }
        timer.position = nil
        let last = timers.removeLast()
        guard last !== timer else { return }
        rise(last, from: gap)
        if let position = last.position { sink(last, from: position) }
    }

    /// Takes out the earliest timer if it is due and was set before `ticket` was given out.
    ///
    /// The second condition keeps a timer that sets itself with no delay from firing for ever in one turn: it stands
    /// behind all that were due before.
    mutating func popDue(at now: Duration, before ticket: UInt64) -> Timer? {
        guard let first = timers.first, first.deadline <= now, first.ticket < ticket else { return nil }
        remove(first)
        return first
    }

    mutating func removeAll() -> [Timer] {
        for timer in timers { timer.position = nil }
        defer { timers = [] }
        return timers
    }

    /// Puts `timer` at `start` or, while it is earlier than the one above, further up.
    private mutating func rise(_ timer: Timer, from start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard precedes(timer, timers[parent]) else { break }
            place(timers[parent], at: position)
            position = parent
        }
        place(timer, at: position)
    }

    /// Puts `timer` at `start` or, while one below is earlier, further down.
    private mutating func sink(_ timer: Timer, from start: Int) {
        var position = start
        while true {
            var child = 2 * position + 1
            guard child < timers.count else { break }
            if child + 1 < timers.count, precedes(timers[child + 1], timers[child]) { child += 1 }
            guard precedes(timers[child], timer) else { break }
            place(timers[child], at: position)
            position = child
        }
        place(timer, at: position)
    }

    private mutating func place(_ timer: Timer, at position: Int) {
        timers[position] = timer
        timer.position = position
    }

    private func precedes(_ one: Timer, _ other: Timer) -> Bool {
        (one.deadline, one.ticket) < (other.deadline, other.ticket)
    }
}
