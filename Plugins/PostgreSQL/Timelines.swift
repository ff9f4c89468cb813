import Synchronization

/// The highest timeline that this process has seen of each database cluster, by its system identifier. A server on a
/// lower one is a primary of the past: it lacks what has been committed since the promotion.
enum Timelines {
    private static let highest = Mutex<[Int64: Int64]>([:])

    /// The highest timeline seen, if it is higher than that of a server; nil: the server may be used.
    static func above(_ identity: ServerIdentity) -> Int64? {
        guard identity.system != 0, let seen = highest.withLock({ $0[identity.system] }) else { return nil }
        return seen > identity.timeline ? seen : nil
    }

    /// Notes a server that is used.
    static func note(_ identity: ServerIdentity) {
        guard identity.system != 0 else { return }
        highest.withLock { $0[identity.system] = max($0[identity.system] ?? 0, identity.timeline) }
    }
}
