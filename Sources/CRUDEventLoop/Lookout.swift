import Glibc

/// How a thread waits for what may come at any moment: it looks out for a while before it sleeps.
///
/// To wake a sleeping thread takes some 25 µs where its CPU has gone to sleep with it, on a virtual machine, which is as
/// long as everything else about a read or a small write but its sync. So a thread whose last wait was short looks out for
/// ``span`` before it sleeps; one look in vain, and it sleeps at once until a wait has been short again. So a thread
/// whose waits are all longer never looks out, and a short one costs at most one look in vain.
///
/// Where others want the CPU too, looking out is worse than useless: the scheduler counts it as use, and has the thread wait
/// when it has work. So when somebody else has had the CPU for long in between, the thread does not look out for ``rest``.
package struct Lookout {
    /// A client on another CPU that has just been answered comes with its next request within some 80 µs; a small write is
    /// synced within some 150 µs.
    package static let span = Duration.microseconds(200)
    /// Whoever has the CPU for so long has more to do than to answer a request.
    private static let crowding = Duration.milliseconds(1)
    /// How long a thread does not look out after it has met such a one.
    private static let rest = Duration.milliseconds(100)

    /// Whether the last wait was short.
    private var isPromising = false
    /// When the thread may look out again, if it has met somebody, counted from ``epoch``.
    // No Instant, whose size only the standard library knows: built without optimisation by Swift 6.3.1, a noncopyable
    // struct that holds one is not deinitialised, and the sockets of children that hold a lookout stayed open.
    private var restsUntil: Duration?
    private static let epoch = ContinuousClock.now

    package init() {}

    /// Waits.
    ///
    /// - Parameters:
    ///   - look: answers what has come, nil if nothing has; called over and over.
    ///   - sleep: waits for it.
    package mutating func wait<Found>(look: () -> Found?, sleep: () -> Found) -> Found {
        let begin = ContinuousClock.now
        if let end = restsUntil {
            guard end <= begin - Self.epoch else { return sleep() }
            restsUntil = nil
        }
        defer { isPromising = ContinuousClock.now - begin < Self.span }
        if isPromising, let found = lookOut(from: begin, look) { return found }
        return sleep()
    }

    private mutating func lookOut<Found>(from begin: ContinuousClock.Instant, _ look: () -> Found?) -> Found? {
        var now = begin
        while now - begin < Self.span {
            if let found = look() { return found }
            // Whoever else wants this CPU gets it: it may be the one who is waited for.
            sched_yield()
            let returned = ContinuousClock.now
            if returned - now > Self.crowding { restsUntil = returned - Self.epoch + Self.rest }
            now = returned
        }
        return nil
    }
}
