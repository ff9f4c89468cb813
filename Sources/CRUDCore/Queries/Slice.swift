/// How long a search may go on before it lets others have their turn.
///
/// Some milliseconds, counted from its first record; and at least as long as it has taken to come to that, so that where
/// beginning is costly no more than half of the time goes into it.
struct Slice {
    private let start = ContinuousClock.now
    private var end: ContinuousClock.Instant?
    private var count = 0

    private static let duration = Duration.milliseconds(5)
    /// The clock is looked at once in so many records.
    private static let recordsPerLook = 32

    /// Counts a record; true if there is to be no further one.
    mutating func isOver() -> Bool {
        count += 1
        guard let end else {
            let now = ContinuousClock.now
            self.end = now + max(Self.duration, now - start)
            return false
        }
        return count % Self.recordsPerLook == 0 && ContinuousClock.now >= end
    }
}
