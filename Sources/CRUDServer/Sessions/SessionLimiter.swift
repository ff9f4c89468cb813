import CRUDConfiguration
import CRUDModel
import Synchronization

/// Limits the sessions of all event loops together, and those of each user.
final class SessionLimiter: Sendable {
    /// How many sessions beyond either limit are kept free for administrators.
    private static let reserveForAdmins = 8

    private struct Count {
        var limits: Configuration.Limits
        var all = 0
        var byUser: [UInt32: Int] = [:]
    }

    private let count: Mutex<Count>

    init(limits: Configuration.Limits) {
        count = Mutex(Count(limits: limits))
    }

    /// The limits in force. Sessions that exceed new ones stay.
    var limits: Configuration.Limits {
        get { count.withLock { $0.limits } }
        set { count.withLock { $0.limits = newValue } }
    }

    /// How many sessions there are.
    var current: Int { count.withLock { $0.all } }

    /// Counts a new session.
    ///
    /// - Throws: `limit_exceeded` if its user, or everybody together, has as many as may be.
    func enter(uid: UInt32, isAdmin: Bool) throws(CRUDError) {
        let reserve = isAdmin ? Self.reserveForAdmins : 0
        let exceeded: (limit: String, maximum: Int)? = count.withLock { count in
            let limits = count.limits
            if count.all >= limits.sessions + reserve { return ("sessions", limits.sessions) }
            let own = count.byUser[uid, default: 0]
            if own >= limits.sessionsPerUser + reserve { return ("sessions_per_user", limits.sessionsPerUser) }
            count.all += 1
            count.byUser[uid] = own + 1
            return nil
        }
        guard let exceeded else { return }
        throw .limit(exceeded.limit, exceeded.maximum, "there are too many sessions")
    }

    /// Counts a session that has ended.
    func leave(uid: UInt32) {
        count.withLock { count in
            count.all -= 1
            let own = count.byUser[uid, default: 0] - 1
            count.byUser[uid] = own > 0 ? own : nil
        }
    }
}
