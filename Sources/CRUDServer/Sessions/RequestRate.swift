import CRUDModel
import Glibc
import Synchronization

/// How many requests per second one user may make, on all event loops together.
///
/// It is the generic cell rate algorithm (ITU-T I.371, annex A), a token bucket as one number: the time at which the
/// requests so far would be over if they had come evenly. One that comes more than ``tolerance`` before that is
/// refused. So a user gets its rate, and a tenth of a second of it at once after a pause.
final class RequestRate: Sendable {
    /// In nanoseconds.
    private static let tolerance: Int64 = 100_000_000

    let uid: uid_t
    /// Requests per second; 0: any number.
    private let rate: Atomic<Int>
    /// How far requests are apart, in nanoseconds; 0: not at all.
    private let interval: Atomic<Int64>
    /// When the next request would come by an even rate, in nanoseconds of the loops' clock.
    private let due = Atomic<Int64>(0)
    private let refused = Atomic<Int>(0)

    fileprivate init(of uid: uid_t, _ rate: Int) {
        self.uid = uid
        self.rate = Atomic(rate)
        interval = Atomic(Self.interval(rate))
    }

    /// The rate, which a reload may change.
    fileprivate(set) var maximum: Int {
        get { rate.load(ordering: .relaxed) }
        set {
            rate.store(newValue, ordering: .relaxed)
            interval.store(Self.interval(newValue), ordering: .relaxed)
        }
    }

    /// How many requests were refused.
    var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// Counts a request. Each request of a user with a limit asks, so it is a few instructions on numbers.
    ///
    /// - Parameter now: in nanoseconds of the loops' clock.
    /// - Returns: false if it is to be refused.
    func admits(at now: Int64) -> Bool {
        let interval = interval.load(ordering: .relaxed)
        guard interval > 0 else { return true }
        var known = due.load(ordering: .relaxed)
        while true {
            let start = max(known, now)
            guard start &- now <= Self.tolerance else {
                refused.add(1, ordering: .relaxed)
                return false
            }
            let (exchanged, original) = due.weakCompareExchange(
                expected: known, desired: start &+ interval, ordering: .relaxed)
            if exchanged { return true }
            known = original
        }
    }

    /// Why a request is refused.
    var excess: CRUDError {
        let rate = maximum
        return .limit(
            "requests_per_second", rate,
            "user \(uid) may make \(rate) requests per second, and has made more; try again later")
    }

    /// Counts what a request that was not refused does beside one: requests that follow wait for it.
    ///
    /// - Parameters:
    ///   - count: of requests.
    ///   - now: in nanoseconds of the loops' clock.
    func charge(_ count: Int, at now: Int64) {
        let time = interval.load(ordering: .relaxed) * Int64(count)
        guard time > 0 else { return }
        var known = due.load(ordering: .relaxed)
        while true {
            let (exchanged, original) = due.weakCompareExchange(
                expected: known, desired: max(known, now) + time, ordering: .relaxed)
            if exchanged { return }
            known = original
        }
    }

    /// How far requests are apart; rounded up, lest a high rate come out higher.
    private static func interval(_ rate: Int) -> Int64 {
        rate > 0 ? (1_000_000_000 + Int64(rate) - 1) / Int64(rate) : 0
    }
}

/// The rates of all users that have a limit, or had one since the daemon was started.
final class RequestRates: Sendable {
    private let rates = Mutex<[uid_t: RequestRate]>([:])

    /// The rate of a user.
    ///
    /// - Parameter maximum: requests per second; nil: any number.
    /// - Returns: nil where there is nothing to count.
    func rate(of uid: uid_t, maximum: Int?) -> RequestRate? {
        rates.withLock { rates in
            if let rate = rates[uid] {
                rate.maximum = maximum ?? 0
                return maximum == nil ? nil : rate
            }
            guard let maximum else { return nil }
            let rate = RequestRate(of: uid, maximum)
            rates[uid] = rate
            return rate
        }
    }

    /// All of them, by user.
    var all: [RequestRate] { rates.withLock { $0.values.sorted { $0.uid < $1.uid } } }
}
