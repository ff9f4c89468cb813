import Glibc
import Synchronization

/// Adaptive spinning: a thread that waits polls for a while before it sleeps, if that has paid lately.
///
/// Waking a sleeping thread takes some 25 µs on a virtual machine whose CPU has gone idle with it. That is as long as
/// everything else about a read, or about a small write apart from its sync. So a thread whose last wait was shorter
/// than ``limit`` polls for up to ``limit`` before it sleeps. After a longer wait it sleeps at once, until a wait has
/// been short again: a thread whose waits are all long never spins, and one short wait costs at most one vain spin.
///
/// Under CPU contention spinning is harmful: the scheduler counts it as use and makes the thread wait when it has work.
/// So when another thread has kept this CPU for longer than ``contention``, the thread does not spin for ``coolDown``.
package struct AdaptiveSpin {
    /// How long a wait may spin in this process; zero: never. The next request of a client on another CPU follows a
    /// reply within some 80 µs; a small write is synced within some 150 µs.
    package static var limit: Duration {
        get { .nanoseconds(limitNanoseconds.load(ordering: .relaxed)) }
        set { limitNanoseconds.store(Int64(newValue / .nanoseconds(1)), ordering: .relaxed) }
    }
    private static let limitNanoseconds = Atomic<Int64>(200_000)
    /// Another thread that keeps the CPU for so long does more than execute one request.
    package static let contention = Duration.milliseconds(1)
    /// How long the thread does not spin after contention has been seen.
    package static let coolDown = Duration.milliseconds(100)

    private let clock: @Sendable () -> Duration
    /// Instead of that of the process.
    private let ownLimit: Duration?

    /// Whether the last wait was shorter than ``limit``.
    private var lastWaitWasShort = false

    /// Until when the thread must not spin; nil where no contention has been seen.
    // No Instant: its size is known to the standard library only, and Swift 6.3.1 without optimisation does not
    // deinitialise a noncopyable struct that holds one. The sockets of children, which hold this struct, stayed open.
    private var coolDownEnd: Duration?

    /// - Parameters:
    ///   - limit: how long a wait may spin; nil: as long as in this process.
    ///   - clock: returns the time since any fixed moment.
    package init(limit: Duration? = nil, clock: @escaping @Sendable () -> Duration = { MonotonicTime.now }) {
        ownLimit = limit
        self.clock = clock
    }

    /// Waits.
    ///
    /// - Parameters:
    ///   - poll: returns what has come, nil if nothing has; called repeatedly while the thread spins.
    ///   - sleep: blocks until something has come, and returns it.
    package mutating func wait<Found>(poll: () -> Found?, sleep: () -> Found) -> Found {
        let limit = ownLimit ?? Self.limit
        guard limit > .zero else { return sleep() }
        let start = clock()
        if let end = coolDownEnd {
            guard end <= start else { return sleep() }
            coolDownEnd = nil
        }
        defer { lastWaitWasShort = clock() - start < limit }
        if lastWaitWasShort, let found = spin(from: start, limit, poll) { return found }
        return sleep()
    }

    private mutating func spin<Found>(from start: Duration, _ limit: Duration, _ poll: () -> Found?) -> Found? {
        var now = start
        while now - start < limit {
            if let found = poll() { return found }
            // Whoever else is ready to run gets this CPU: it may be the thread that is waited for.
            sched_yield()
            let resumed = clock()
            if resumed - now > Self.contention { coolDownEnd = resumed + Self.coolDown }
            now = resumed
        }
        return nil
    }
}
