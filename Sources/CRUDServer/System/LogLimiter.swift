/// Bounds how many lines of one kind are logged, so that no peer can flood the log: some at once, then one a second.
struct LogLimiter {
    private static let burst = 20
    private static let interval = Duration.seconds(1)

    private var available = burst
    /// When ``available`` was last replenished.
    private var time = Duration.zero
    private var suppressed = 0

    /// Whether a line may be logged now.
    ///
    /// - Parameter now: never earlier than the last time.
    /// - Returns: what to put behind the line, which says how many were not logged; nil: do not log it.
    mutating func admit(at now: Duration) -> String? {
        let gained = Int(min((now - time) / Self.interval, Double(Self.burst)))
        if gained > 0 {
            available = min(Self.burst, available + gained)
            time = now
        }
        guard available > 0 else {
            suppressed += 1
            return nil
        }
        available -= 1
        defer { suppressed = 0 }
        return suppressed > 0 ? " (\(suppressed) lines like this one were not logged)" : ""
    }
}
