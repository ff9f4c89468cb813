import CRUDModel
import CRUDThreads

/// How often mutations are tried against the writes of other programs: at once, then after pauses that grow, and differ
/// between daemons, as long as a request waits for them.
struct Contention {
    /// Which attempt is due; the first is 1.
    private(set) var attempt = 1
    private var end: Duration?

    /// For how long there are attempts, as other mutations of the backend may wait meanwhile.
    static let longest: Duration = .seconds(10)
    /// How many there are even if each takes longer.
    private static let least = 10

    /// Whether another program has come between: the records are to be locked as they are read, where the plugin can.
    var isFound: Bool { attempt > 1 }

    /// Waits until the next attempt; false if there is to be none.
    mutating func pause(unless isAbandoned: Bool) -> Bool {
        attempt += 1
        let now = MonotonicTime.now
        let end = self.end ?? now + Self.longest
        self.end = end
        guard !isAbandoned, now < end || attempt <= Self.least else { return false }
        Self.pause(before: attempt)
        return true
    }

    /// Waits a little, in order that daemons that change the same record do not stay in step.
    static func pause(before attempt: Int) {
        guard attempt > 3 else { return }
        Thread.pause(.milliseconds(Int64.random(in: 0...min(1 << min(attempt - 3, 8), 16))))
    }
}

extension CRUDError {
    /// Another program writes the same record all the time.
    static let contended = CRUDError(.unavailable, "another program keeps changing the record")
}
