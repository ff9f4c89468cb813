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
        /// The number of the latest session, which may have been refused all the same.
        var lastNumber = 0
        /// How many have been accepted, and how many connections were refused.
        var opened = 0
        var refused = 0
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

    /// How many sessions there are, how many have been accepted, and how many connections were refused.
    var counts: (current: Int, opened: Int, refused: Int) {
        count.withLock { ($0.all, $0.opened, $0.refused) }
    }

    /// Makes room for a session, which is opened or leaves.
    ///
    /// - Returns: its number, which no other one ever has.
    /// - Throws: `limit_exceeded` if its user, or everybody together, has as many as may be.
    func enter(uid: UInt32, isAdmin: Bool) throws(CRUDError) -> Int {
        let reserve = isAdmin ? Self.reserveForAdmins : 0
        return try count.withLock { count throws(CRUDError) in
            let limits = count.limits
            let own = count.byUser[uid, default: 0]
            guard count.all < limits.sessions + reserve else {
                throw .limit("sessions", limits.sessions, "there are too many sessions")
            }
            guard own < limits.sessionsPerUser + reserve else {
                throw .limit("sessions_per_user", limits.sessionsPerUser, "there are too many sessions of this user")
            }
            count.all += 1
            count.byUser[uid] = own + 1
            count.lastNumber += 1
            return count.lastNumber
        }
    }

    /// Counts a session that has been accepted.
    func noteOpened() { count.withLock { $0.opened += 1 } }

    /// Counts a connection that is refused, whatever the reason.
    func noteRefused() { count.withLock { $0.refused += 1 } }

    /// Counts a session that has ended.
    func leave(uid: UInt32) {
        count.withLock { count in
            count.all -= 1
            let own = count.byUser[uid, default: 0] - 1
            count.byUser[uid] = own > 0 ? own : nil
        }
    }
}
