import CRUDModel
import CRUDStorage
import CRUDThreads
import CRUDWire

/// Counts the requests that one event loop replies to, by method and outcome, and how long they took.
///
/// It is on the path of every request, so it is plain memory of one thread: no atomics, no locks, no references, no
/// strings. Whoever wants the sum over all loops asks each of them for a copy.
///
/// No clock is read for a request. Those that are replied to in the iteration in which they have come, which are nearly
/// all reads, share one duration: the iteration's, until its replies have been sent. So they are only counted, and put
/// into their histogram together, at the end of the iteration and with one reading of the clock. The others keep the
/// time of the iteration in which they have come.
final class RequestMeter {
    private static let outcomeCount = RequestOutcome.names.count

    // Not checked for exclusive access at run time: one thread uses them, and nothing that is called during an access
    // comes back to them.
    @exclusivity(unchecked) private var total: RequestCounts
    @exclusivity(unchecked) private var replied = Replied()

    /// What has been replied to in this iteration.
    private struct Replied {
        /// How many requests of each method that have come in this iteration, and a bit for each method with any.
        var now = [UInt64](repeating: 0, count: RequestCounts.methodCount)
        var methods: UInt64 = 0
        /// Those that have come in earlier iterations.
        var late: [(method: Int, arrival: Duration)] = []
    }

    init() {
        total = RequestCounts()
    }

    /// Counts a request that has been replied to.
    ///
    /// - Parameters:
    ///   - method: nil where it was not recognised.
    ///   - arrival: the time of the iteration in which it has come.
    ///   - now: the time of this iteration.
    /// - Returns: whether both are the same.
    func count(_ method: Method?, _ outcome: RequestOutcome, arrival: Duration, now: Duration) -> Bool {
        let method = method?.rawValue ?? RequestCounts.unknownMethod
        total.outcomes[method * Self.outcomeCount + outcome.index] &+= 1
        if arrival == now {
            replied.now[method] &+= 1
            replied.methods |= 1 << UInt64(method)
            return true
        }
        replied.late.append((method, arrival))
        return false
    }

    /// The replies of an iteration have been sent, which began at `start`.
    func iterationWillEnd(_ start: Duration) {
        guard replied.methods != 0 || !replied.late.isEmpty else { return }
        let end = MonotonicTime.now
        while replied.methods != 0 {
            let method = replied.methods.trailingZeroBitCount
            replied.methods &= replied.methods - 1
            total.durations[method].add(end - start, times: replied.now[method])
            replied.now[method] = 0
        }
        for request in replied.late { total.durations[request.method].add(end - request.arrival, times: 1) }
        replied.late.removeAll(keepingCapacity: true)
    }

    /// What has been counted.
    var counts: RequestCounts { total }
}

/// The numbers of requests by method and outcome, and their durations by method.
struct RequestCounts: Sendable {
    /// The methods of the protocol, and one for those that it does not know.
    static let methodCount = Method.allCases.count + 1
    static let unknownMethod = Method.allCases.count

    /// Method by method, those of each in the order of ``RequestOutcome/names``.
    fileprivate(set) var outcomes = [UInt64](repeating: 0, count: methodCount * RequestOutcome.names.count)
    fileprivate(set) var durations = [Histogram](repeating: Histogram.times(), count: methodCount)

    mutating func add(_ other: RequestCounts) {
        for index in outcomes.indices { outcomes[index] &+= other.outcomes[index] }
        for index in durations.indices { durations[index].add(other.durations[index]) }
    }

    /// How many requests of a method have had an outcome.
    func count(_ method: Int, outcome: Int) -> UInt64 { outcomes[method * RequestOutcome.names.count + outcome] }

    /// The name of a method for a label.
    static func name(ofMethod method: Int) -> String {
        Method(rawValue: method)?.name.description ?? "unknown"
    }
}
