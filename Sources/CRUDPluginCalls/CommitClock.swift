import Synchronization

/// Counts the commits of a backend, so that a reader can tell whether its snapshot lacks one.
///
/// With several readers that clients read from at once the count is odd while a write is in progress. A snapshot that
/// begins then may contain the write, although its client has no reply yet and other readers do not show it. So no
/// snapshot is kept while the count is odd.
package final class CommitClock: Sendable {
    private let commits = Atomic<UInt64>(0)
    private let marksBeginning: Bool

    /// - Parameter readers: how many event loops read.
    package init(readers: Int) {
        marksBeginning = readers > 1
    }

    package var now: UInt64 { commits.load(ordering: .acquiring) }

    /// Whether a write was in progress when the clock showed `now`.
    package func isCommitting(_ now: UInt64) -> Bool { marksBeginning && !now.isMultiple(of: 2) }

    /// Counts a write that has no other observers.
    package func write<Result>(_ body: () -> Result) -> Result {
        begin()
        defer { end() }
        return body()
    }

    /// Counts what another program has written: twice, so that the count stays odd where it is.
    package func noteForeignWrite() { commits.add(2, ordering: .acquiringAndReleasing) }

    /// A write begins.
    package func begin() {
        if marksBeginning { commits.add(1, ordering: .acquiringAndReleasing) }
    }

    /// A write has ended, whatever its outcome.
    package func end() { commits.add(1, ordering: .acquiringAndReleasing) }
}
