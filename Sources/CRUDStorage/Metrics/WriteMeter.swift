package import CRUDPluginABI
import CRUDThreads
import Synchronization

/// Counts the writes of a backend: how many mutations each has, and how long the plugin takes for them. Both are noted
/// by the writer's thread, once for each batch. Upkeep, by which a plugin is given no mutations, does not count.
package final class WriteMeter: CommitObserver {
    /// What it has counted.
    package struct Counts: Sendable {
        package fileprivate(set) var batchSizes = Histogram.sizes()
        package fileprivate(set) var durations = Histogram.times()
        fileprivate var start = Duration.zero
    }

    private let state = Mutex(Counts())

    init() {}

    package var counts: Counts { state.withLock { $0 } }

    package func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>) {
        let now = MonotonicTime.now
        state.withLock { $0.start = now }
    }

    package func committed(_ commit: borrowing Commit) {
        guard !commit.mutations.isEmpty, !commit.isExpiry else { return }
        let now = MonotonicTime.now
        let count = UInt64(commit.mutations.count)
        state.withLock { counts in
            counts.batchSizes.add(count)
            counts.durations.add(now - counts.start)
        }
    }
}
