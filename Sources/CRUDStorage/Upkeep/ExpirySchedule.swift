import CRUDPluginABI

/// When records expire next, collection by collection, as far as the commits of the backend tell.
final class ExpirySchedule: CommitObserver, @unchecked Sendable {
    // @unchecked: used on the writer's thread only, as observers of commits are.

    /// By the addresses by which the plugin knows collections: milliseconds since 1970-01-01 UTC.
    private var times: [UInt: Int64] = [:]
    /// The earliest of them, or an earlier time.
    private(set) var earliest = Int64.max

    func time(of collection: OpaquePointer) -> Int64 { times[UInt(bitPattern: collection)] ?? .max }

    /// - Parameter time: 0: none of its records expires.
    func set(_ time: Int64, for collection: OpaquePointer) {
        times[UInt(bitPattern: collection)] = time == 0 ? nil : time
        findEarliest()
    }

    /// What was the earliest has been taken care of.
    func findEarliest() { earliest = times.values.min() ?? .max }

    func forget(_ collection: OpaquePointer) {
        if times.removeValue(forKey: UInt(bitPattern: collection)) != nil { findEarliest() }
    }

    // MARK: Commits

    func willCommit(_: UnsafeBufferPointer<crudd_mutation>) {}

    func committed(_ commit: borrowing Commit) {
        for mutation in commit.mutations {
            guard let time = mutation.record?.pointee.expires_at, time != 0 else { continue }
            let address = UInt(bitPattern: mutation.collection)
            if time < times[address] ?? .max { times[address] = time }
            earliest = min(earliest, time)
        }
    }
}
