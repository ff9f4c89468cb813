import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDStorage
import CRUDThreads
import Synchronization

/// Measures what users with quotas store, on a thread of its own.
///
/// Each second it reads those of their collections whose backend has been written, page by page, and rests after each
/// page for as long as nine pages take. So it takes at most a tenth of one reading thread of a backend, and what it
/// knows is at most as old as it takes to read those collections ten times, and a second. Where no rule has a quota the
/// thread sleeps. A start measures everything anew.
final class QuotaMeasuring: Sendable {
    private static let interval = Duration.seconds(1)
    private static let pageTimeout = Duration.seconds(10)
    private static let restsPerPage = 9
    private static let longestRest = Duration.seconds(1)

    private let quotas: Quotas
    private let control: PlacementControl
    private let access = Mutex<AccessPolicy?>(nil)
    private let queue = WorkQueue<Wake>()

    private final class Wake: QueueItem {
        let byteCount = 0
    }

    /// What is known of a collection.
    private struct Measured {
        let place: CollectionPlace
        /// How much its backend had been written when that was begun.
        let writes: UInt64
        let use: Quotas.Use
    }

    init(_ quotas: Quotas, _ control: PlacementControl) {
        self.quotas = quotas
        self.control = control
    }

    /// Follows the rules of a configuration.
    func follow(_ policy: AccessPolicy) {
        access.withLock { $0 = policy }
        queue.wake()
    }

    /// Measures from now on.
    func start() throws(ThreadFailure) {
        _ = try Thread(named: "quotas") { [self] in
            var measured: [[UInt8]: Measured] = [:]
            while true {
                if let policy = access.withLock({ $0 }), policy.hasQuotas {
                    measure(by: policy, &measured)
                    _ = queue.take(timeout: Self.interval)
                } else {
                    measured = [:]
                    quotas.keep([])
                    _ = queue.take(timeout: nil)
                }
            }
        }
    }

    private func measure(by policy: AccessPolicy, _ measured: inout [[UInt8]: Measured]) {
        var owned: [UInt32: [(name: [UInt8], place: CollectionPlace)]] = [:]
        for (name, entry) in control.catalog.entries {
            guard let owner = entry.placement.owner, let place = entry.placement.authority else { continue }
            owned[owner, default: []].append((name, place))
        }
        var users: Set<UInt32> = []
        var next: [[UInt8]: Measured] = [:]
        for (uid, collections) in owned {
            let limits = policy.limits(uid: uid, groups: Accounts.groups(of: uid))
            guard !limits.quotas.isEmpty else { continue }
            users.insert(uid)
            var owner = Quotas.Owner(uid: uid, limits: limits, collections: collections.map(\.name))
            if limits.records != nil || limits.bytes != nil {
                var sum = Quotas.Use()
                for (name, place) in collections {
                    let known = measured[name].flatMap { $0.place == place ? $0 : nil }
                    guard let found = measure(name, place, known) else { continue }
                    next[name] = found
                    sum.records += found.use.records
                    sum.bytes += found.use.bytes
                }
                owner.use = sum
            }
            quotas.note(owner)
        }
        quotas.keep(users)
        measured = next
    }

    /// - Returns: what is known if the backend has not been written since, or cannot be asked.
    private func measure(_ name: [UInt8], _ place: CollectionPlace, _ known: Measured?) -> Measured? {
        guard let backend = control.backend(place.backend) else { return known }
        let writes = backend.writeCounts.batchSizes.sum
        if let known, known.writes == writes { return known }
        var use = Quotas.Use()
        do throws(CRUDError) {
            var begin = ContinuousClock.now
            try backend.forEachPage(of: name, place.format, within: Self.pageTimeout) { records in
                use.records += records.count
                use.bytes += records.reduce(0) { $0 + $1.id.count + $1.item.count }
                Thread.pause(min((ContinuousClock.now - begin) * Self.restsPerPage, Self.longestRest))
                begin = ContinuousClock.now
                return true
            }
        } catch {
            return known
        }
        return Measured(place: place, writes: writes, use: use)
    }
}
