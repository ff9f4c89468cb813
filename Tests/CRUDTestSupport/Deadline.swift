/// The moment by which something must have happened. Every wait of a test has one; none of them sleeps.
package struct Deadline: Sendable {
    /// Long enough for two busy cores, short enough to fail a test rather than a run.
    package static let patience = Duration.seconds(30)

    private let end: ContinuousClock.Instant

    /// A moment `bound` from now.
    package init(_ bound: Duration = patience) {
        end = .now + bound
    }

    package var hasPassed: Bool { end <= .now }

    /// What is left, rounded up, as poll(2) takes it.
    package var milliseconds: Int32 {
        let rest = ContinuousClock.Instant.now.duration(to: end)
        guard rest > .zero else { return 0 }
        let (seconds, attoseconds) = rest.components
        return Int32(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }
}
