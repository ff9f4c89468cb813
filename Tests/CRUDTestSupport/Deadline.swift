/// The time by which something must have happened. Every wait of a test has one; none of them sleeps.
package struct Deadline: Sendable {
    /// Long enough for two cores on which others work too, short enough to fail a test rather than a run.
    package static let timeout = Duration.seconds(120)

    private let end: ContinuousClock.Instant

    /// The time `timeout` from now.
    package init(_ timeout: Duration = timeout) {
        end = .now + timeout
    }

    package var hasPassed: Bool { end <= .now }

    /// The remaining time, rounded up, for poll(2).
    package var milliseconds: Int32 {
        let rest = ContinuousClock.Instant.now.duration(to: end)
        guard rest > .zero else { return 0 }
        let (seconds, attoseconds) = rest.components
        return Int32(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }
}
