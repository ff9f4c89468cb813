import CLinux
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDThreads
import CRUDWire
import Glibc
import Synchronization

/// A request that took longer than `log.slow`. It has no value of a filter, and says nothing of what is in records.
struct SlowRequest: Sendable {
    /// When its reply was ready: milliseconds since 1970-01-01 UTC.
    let at: Int64
    let method: Method
    /// Nil for a request on no collection, or on several.
    let collection: [UInt8]?
    /// How many records it names.
    let records: Int
    /// From its arrival on.
    let duration: Duration
    /// The part of it before it was begun.
    let waited: Duration
    let origin: RequestOrigin
    /// The trace that it belongs to; nil: none.
    let traceParent: TraceParent?
    /// Nil for what does not look for records by what is in them.
    let search: Search?

    /// What it has looked for, and how.
    struct Search: Sendable {
        /// The shape of its filter; nil: it has none.
        let filter: String?
        /// Nil: by id.
        let sort: String?
        /// How many records it has returned, counted or deleted, where that is known.
        var returned: Int?
        /// Where it is known.
        let plan: QueryPlan?

        /// How much is kept of a filter's or an order's shape.
        private static let maximumBytes = 1024

        init(_ filter: Filter?, _ sort: SortOrder = SortOrder(), returned: Int? = nil, _ plan: QueryPlan? = nil) {
            self.filter = (filter?.shape).map { visible($0.utf8, atMost: Self.maximumBytes) }
            self.sort =
                sort.keys.isEmpty ? nil : visible(sort.shape.utf8, atMost: Self.maximumBytes)
            self.returned = returned ?? plan?.returned
            self.plan = plan
        }
    }

    init(
        _ method: Method, on collection: [UInt8]?, records: Int, duration: Duration, waited: Duration,
        from origin: RequestOrigin, _ traceParent: TraceParent?, _ search: Search?
    ) {
        at = CallContext.now
        self.method = method
        self.collection = collection
        self.records = records
        self.duration = duration
        self.waited = waited
        self.origin = origin
        self.traceParent = traceParent
        self.search = search
    }

    func describe(to description: inout JSONWriter) {
        description.member("at", at)
        description.member("method", method.name.description)
        description.key("collection")
        if let collection { description.string(utf8: collection) } else { description.null() }
        description.key("seconds")
        description.raw("\(duration.seconds)".utf8)
        description.key("waited")
        description.raw("\(waited.seconds)".utf8)
        description.member("uid", origin.uid)
        description.member("client", origin.client)
        if let traceParent { description.member("traceparent", traceParent.description) }
        guard let search else { return }
        if let filter = search.filter { description.member("filter", filter) }
        if let sort = search.sort { description.member("sort", sort) }
        if let returned = search.returned { description.member("returned", returned) }
        guard let plan = search.plan else { return }
        description.key("plan")
        plan.write(to: &description)
    }
}

extension SlowRequest: CustomStringConvertible {
    /// For the log.
    var description: String {
        var text = method.name.description
        if let collection { text += " on collection \(quoted(collection))" }
        if records > 1 { text += ", \(records) records," }
        text += " took \(DurationText.text(seconds: duration.seconds))"
        if waited > .zero { text += ", of which it waited \(DurationText.text(seconds: waited.seconds))" }
        if let traceParent { text += ", trace \(traceParent.traceID)" }
        guard let search else { return text }
        if let filter = search.filter { text += "; filter: \(filter)" }
        if let sort = search.sort { text += "; sort: \(sort)" }
        if let plan = search.plan {
            text += "; \(plan.words)"
        } else if let returned = search.returned {
            text += "; \(returned) record\(returned == 1 ? "" : "s")"
        }
        return text
    }
}

extension SortOrder {
    /// Such as `name, age DESC`.
    fileprivate var shape: String {
        keys.map { $0.path.shape + ($0.isDescending ? " DESC" : "") }.joined(separator: ", ")
    }
}

/// Tells whether requests take longer than `log.slow`.
///
/// It is asked at each reply, so it first reads a clock that costs next to nothing, the time of the kernel's last tick,
/// and the precise one only where that says that a request may be slow. Where `log.slow` is not far above the time
/// between two ticks, the precise clock is read at once.
struct SlowClock {
    private let limit: Duration
    private let isCoarse: Bool
    /// What has taken less by the coarse clock is not slow, in nanoseconds; the least number: that clock tells
    /// nothing.
    private let coarseNanoseconds: Int64

    /// - Parameter limit: zero: no request is slow.
    init?(_ limit: Duration) {
        guard limit > .zero else { return nil }
        self.limit = limit
        isCoarse = limit > MonotonicTime.tick * 4
        let (seconds, attoseconds) = (limit - MonotonicTime.tick).components
        coarseNanoseconds = isCoarse ? seconds * 1_000_000_000 + attoseconds / 1_000_000_000 : .min
    }

    /// Whether a request that has come in this iteration is not slow. Each read that is replied to at once asks, so it
    /// is a few instructions on numbers.
    ///
    /// - Parameter start: of the iteration, in nanoseconds of the loop's clock.
    @inline(__always)
    func excludes(since start: Int64) -> Bool {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) &- start < coarseNanoseconds
    }

    /// How long a request has taken, if it is slow.
    ///
    /// - Parameter arrival: when it has come, on the loop's clock.
    func duration(since arrival: Duration) -> Duration? {
        if isCoarse, MonotonicTime.coarse - arrival < limit - MonotonicTime.tick { return nil }
        let duration = MonotonicTime.now - arrival
        return duration > limit ? duration : nil
    }
}

/// The latest slow requests of all event loops.
final class SlowLog: Sendable {
    static let capacity = 128

    private struct State {
        var entries: [SlowRequest] = []
        /// Where the next entry goes once there are as many as there may be.
        var next = 0
        var count: UInt64 = 0
    }

    private let state = Mutex(State())

    func append(_ request: SlowRequest) {
        state.withLock { state in
            state.count += 1
            if state.entries.count < Self.capacity { return state.entries.append(request) }
            state.entries[state.next] = request
            state.next = (state.next + 1) % Self.capacity
        }
    }

    /// The newest first.
    var entries: [SlowRequest] {
        state.withLock { Array(($0.entries[$0.next...] + $0.entries[..<$0.next]).reversed()) }
    }

    /// How many there have been.
    var count: UInt64 { state.withLock { $0.count } }
}

extension Duration {
    /// To the microsecond.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds * 1_000_000 + attoseconds / 1_000_000_000_000) / 1e6
    }
}
