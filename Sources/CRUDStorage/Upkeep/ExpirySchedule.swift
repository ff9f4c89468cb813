import CRUDPluginABI

/// When records expire next, collection by collection, as far as the commits of the backend tell.
final class ExpirySchedule: CommitObserver, @unchecked Sendable {
    // @unchecked: used on the writer's thread only, as observers of commits are.

    /// By the handles of the plugin: milliseconds since 1970-01-01 UTC.
    private var times: [OpaquePointer: Int64] = [:]
    /// The earliest of them, or an earlier time.
    private(set) var earliest = Int64.max

    /// The collection whose next record expires first, and when; nil: none has one.
    var first: (collection: OpaquePointer, time: Int64)? {
        times.min { $0.value < $1.value }.map { ($0.key, $0.value) }
    }

    /// - Parameter time: 0: none of its records expires.
    func set(_ time: Int64, for collection: OpaquePointer) {
        times[collection] = time == 0 ? nil : time
        findEarliest()
    }

    /// What was the earliest has been taken care of.
    func findEarliest() { earliest = times.values.min() ?? .max }

    func forget(_ collection: OpaquePointer) {
        if times.removeValue(forKey: collection) != nil { findEarliest() }
    }

    // MARK: Commits

    func willCommit(_: UnsafeBufferPointer<crudd_mutation>) {}

    func committed(_ commit: borrowing Commit) {
        for mutation in commit.mutations {
            guard let collection = mutation.collection, let time = mutation.record?.pointee.expires_at, time != 0
            else { continue }
            times[collection] = min(time, times[collection] ?? .max)
            earliest = min(earliest, time)
        }
    }
}
