import CRUDPluginHost
import CRUDThreads

/// For how long a commit is delayed so that it has more mutations (compare PostgreSQL's `commit_delay`).
///
/// Clients that have waited for a commit send their next requests when it ends. The first of those would begin a commit
/// of its own, for which the others wait, so that each request takes the time of two commits. So a commit waits until
/// there are as many mutations as the last one had and as have come while that was made, for a part of its time.
///
/// Where they do not come in that time, as clients do something else in between, commits are not delayed for a while:
/// one after the first vain delay, three after the second in a row, and so on.
///
/// It pays where a commit takes much the same time whatever it has. Where the writer's own thread makes it within
/// microseconds of work for each mutation, what it does for one half of the clients overlaps with what the other half
/// does, and waiting for all of them costs more than it saves.
struct CommitDelay {
    /// What the next commit waits for; nil: for nothing.
    private(set) var next: Gathering?
    private var vainDelays = 0
    /// How many commits have not been delayed since the last vain delay.
    private var undelayed = 0

    /// A commit that takes less is over before others have come.
    static let shortestCommit = Duration.microseconds(250)
    /// The part of a commit's time for which the next one waits.
    static let part = 3
    static let longest = Duration.milliseconds(1)
    private static let maximumVainDelays = 6

    /// Whether commits are to be delayed: those of storage that has transactions, and is not in this process, where a
    /// read takes microseconds.
    static func pays(with capabilities: Plugin.Capabilities) -> Bool {
        capabilities.contains(.transactions) && !capabilities.contains(.fastReads)
    }

    /// To be called after each commit.
    ///
    /// - Parameters:
    ///   - count: how many mutations it had.
    ///   - duration: how long it took.
    ///   - waiting: how many have come meanwhile; nil: something must not wait for them.
    mutating func committed(_ count: Int, in duration: Duration, waiting: Int?) {
        if let next {
            vainDelays = count >= next.count ? 0 : min(vainDelays + 1, Self.maximumVainDelays)
            undelayed = 0
        } else {
            undelayed += 1
        }
        next = nil
        guard let waiting, count > 0, count + waiting > 1, duration >= Self.shortestCommit,
            undelayed >= (1 << vainDelays) - 1
        else { return }
        next = Gathering(count: count + waiting, limit: min(duration / Self.part, Self.longest))
    }
}
