/// Calls a closure once after a delay; can be set again any number of times.
///
/// Bound to its loop's thread. The loop retains a timer that is set. The closure should refer weakly to an object that
/// owns the timer.
package final class Timer {
    private let loop: EventLoop
    private let action: () -> Void

    /// When it is due, on the loop's clock, and its rank among timers with the same deadline.
    fileprivate var deadline: Duration = .zero
    fileprivate var ticket: UInt64 = 0

    /// Its index in the heap; nil while it is not set.
    fileprivate var position: Int?

    package init(on loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    package var isScheduled: Bool { position != nil }

    /// Sets the timer; replaces the deadline of a timer that is set already.
    ///
    /// It fires once, in the first iteration that begins at least `delay` after the present one began
    /// (``EventLoop/now``), on an idle loop up to a millisecond later. Timers fire in the order of their deadlines,
    /// those with equal deadlines in the order in which they were set.
    package func schedule(after delay: Duration) {
        cancel()
        deadline = loop.now + max(delay, .zero)
        loop.timers.insert(self)
    }

    /// Unsets the timer. It will not fire, even if it is due in this iteration. Does nothing if it is not set.
    package func cancel() {
        loop.timers.remove(self)
    }

    func fire() {
        action()
    }
}

/// The timers that are set, as a binary heap: the earliest is first, and each knows its index.
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

    /// Removes and returns the earliest timer if it is due and was set before `ticket` was issued.
    ///
    /// The second condition stops a timer that sets itself without delay from firing for ever in one iteration.
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

    /// Places `timer` at `start`, or further up while it is earlier than its parent.
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

    /// Places `timer` at `start`, or further down while a child is earlier.
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
