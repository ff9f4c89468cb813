import Glibc

/// How a thread waits for what may come at any moment: it looks out for a while before it sleeps.
///
/// To wake a sleeping thread takes some 25 µs where its CPU has gone to sleep with it, on a virtual machine, which is as
/// long as everything else about a read or a small write but its sync. So a thread whose last wait was short looks out for
/// ``span`` before it sleeps; one look in vain, and it sleeps at once until a wait has been short again. So a thread
/// whose waits are all longer never looks out, and a short one costs at most one look in vain.
package struct Lookout {
    /// A client on another CPU that has just been answered comes with its next request within some 80 µs; a small write is
    /// synced within some 150 µs.
    package static let span = Duration.microseconds(200)

    /// Whether the last wait was short.
    private var isPromising = false

    package init() {}

    /// Waits.
    ///
    /// - Parameters:
    ///   - look: answers what has come, nil if nothing has; called over and over.
    ///   - sleep: waits for it.
    package mutating func wait<Found>(look: () -> Found?, sleep: () -> Found) -> Found {
        let begin = ContinuousClock.now
        defer { isPromising = ContinuousClock.now - begin < Self.span }
        if isPromising {
            repeat {
                if let found = look() { return found }
                // Whoever else wants this CPU gets it: it may be the one who is waited for.
                sched_yield()
            } while ContinuousClock.now - begin < Self.span
        }
        return sleep()
    }
}
