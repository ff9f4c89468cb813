/// Keeps a failing backend from flooding the log: a line that repeats itself is let through once in ten seconds, with
/// the number of those held back.
struct FailureLog: Sendable {
    private struct Entry {
        var written: ContinuousClock.Instant
        var suppressed = 0
    }

    private var entries: [String: Entry] = [:]
    private static let pause = Duration.seconds(10)
    /// How many lines are remembered; of more kinds than that, the one written longest ago is forgotten.
    private static let maximumEntries = 16

    /// The line to write now, or nil.
    mutating func line(for line: String, now: ContinuousClock.Instant = .now) -> String? {
        let known = entries[line]
        if let known, now - known.written < Self.pause {
            entries[line]?.suppressed += 1
            return nil
        }
        if known == nil, entries.count == Self.maximumEntries {
            entries.min { $0.value.written < $1.value.written }.map { entries[$0.key] = nil }
        }
        entries[line] = Entry(written: now)
        let suppressed = known?.suppressed ?? 0
        return suppressed > 0 ? "\(line) (\(suppressed) more like this one)" : line
    }
}
