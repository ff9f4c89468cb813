/// Keeps a failing backend from flooding the log: a line that repeats itself is let through once in ten seconds, with
/// the number of those held back.
struct FailureLog: Sendable {
    private var last: (line: String, time: ContinuousClock.Instant)?
    private var suppressed = 0

    /// The line to write now, or nil.
    mutating func line(for line: String, now: ContinuousClock.Instant = .now) -> String? {
        if let last, last.line == line, now - last.time < .seconds(10) {
            suppressed += 1
            return nil
        }
        defer {
            last = (line, now)
            suppressed = 0
        }
        return suppressed > 0 ? "\(line) (\(suppressed) more like the one before)" : line
    }
}
