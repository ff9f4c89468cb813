/// How long a search continues before it yields to other work.
///
/// The time counts from the slice's first record, and is at least as long as it took to get there: where beginning is
/// costly, at most half of the time goes into it.
struct Slice {
    private let limits: SearchLimits
    private let duration: Duration
    private let start: ContinuousClock.Instant
    private var end: ContinuousClock.Instant?
    private var recordsUntilReading = 0
    private var bytesUntilReading = 0

    /// The clock is read at least once in so many bytes of work.
    private static let bytesPerReading = 64 << 10

    init(_ limits: SearchLimits, _ duration: Duration) {
        self.limits = limits
        self.duration = duration
        start = limits.now()
    }

    /// Whether the time is up.
    mutating func isOver() -> Bool {
        let now = limits.now()
        guard let end else {
            self.end = now + max(duration, now - start)
            return false
        }
        return now >= end
    }

    /// Counts a record; returns whether there is to be no further one.
    ///
    /// - Parameter bytes: the work that it has taken.
    mutating func isOverAfterRecord(of bytes: Int) -> Bool {
        bytesUntilReading -= bytes
        guard recordsUntilReading == 0 || bytesUntilReading <= 0 else {
            recordsUntilReading -= 1
            return false
        }
        recordsUntilReading = limits.recordsPerReading - 1
        bytesUntilReading = Self.bytesPerReading
        return isOver()
    }
}
