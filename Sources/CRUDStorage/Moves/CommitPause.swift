/// How long writers of a collection that is being copied are made to wait after each commit.
///
/// Not at all as long as the copy catches up. Where clients write faster than the new place can be written, it never
/// would: with each round of changes that ends with more of them than it began with, the writers wait a little longer,
/// until they are the slower ones.
struct CommitPause {
    private(set) var duration = Duration.zero

    private static let increment = Duration.milliseconds(1)
    /// Long beside a commit, short beside a time-out.
    private static let longest = Duration.milliseconds(100)

    var isLongest: Bool { duration == Self.longest }

    /// Notes how many changes there were before a round of copying them, and how many are left.
    mutating func note(before: Int, after: Int) {
        if after > 0, after >= before { duration = min(Self.longest, duration + Self.increment) }
    }
}
