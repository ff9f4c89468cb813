import CRUDHistogram

/// What `crudctl top` shows: the difference between the last two texts of metrics, and the rates of the last minute.
struct TopState {
    /// How many rates are kept: a minute, at one a second.
    static let historyLength = 60

    /// A method or a collection.
    struct Rate {
        var name: String
        /// Per second.
        var requests = 0.0
        var errors = 0.0
        /// In seconds, at most 1.6 % too long; nil where there were no requests.
        var median: Double?
        var slowest: Double?
    }

    struct Backend {
        var name: String
        var state: String
        var queue: Double
        /// The mean of the last second; nil where nothing was written.
        var batch: Double?
        /// 99 of 100 writes were faster, in seconds.
        var slowest: Double?
        var restarts: Double
    }

    struct Move {
        var collection: String
        var state: String
        var copied: Double
        var total: Double
    }

    private(set) var version = ""
    /// Seconds.
    private(set) var uptime = 0.0
    private(set) var sessions = 0.0
    private(set) var residentBytes = 0.0
    private(set) var heldBytes = 0.0
    /// The part of a second of one processor.
    private(set) var cpu: Double?
    /// The hottest first.
    private(set) var methods: [Rate] = []
    private(set) var collections: [Rate] = []
    private(set) var backends: [Backend] = []
    private(set) var moves: [Move] = []
    /// The part of the reads that the cache has served, from 0 to 1; nil where it was not asked.
    private(set) var hitRatio: Double?
    /// Per second, the latest last; nil while the daemon was not there.
    private(set) var requests: [Double?] = []
    private(set) var errors: [Double?] = []
    private(set) var hitRatios: [Double?] = []
    /// Why there is nothing new; nil while the daemon replies.
    private(set) var problem: String?

    private var last: (metrics: MetricsReader, seconds: Double)?

    /// Takes a text of metrics.
    ///
    /// - Parameters:
    ///   - seconds: when it came, on a clock that nobody sets.
    ///   - now: in seconds since 1970-01-01 UTC.
    mutating func update(_ metrics: MetricsReader, at seconds: Double, now: Double) {
        problem = nil
        version = metrics["crudd_build_info"].first?.labels["version"] ?? ""
        uptime = max(0, now - (metrics.value("process_start_time_seconds") ?? now))
        sessions = metrics.value("crudd_sessions") ?? 0
        residentBytes = metrics.value("process_resident_memory_bytes") ?? 0
        heldBytes = metrics.value("crudd_buffer_bytes") ?? 0
        moves = Self.moves(metrics)
        // A daemon that was started again counts from 0.
        let isSame =
            last?.metrics.value("process_start_time_seconds") == metrics.value("process_start_time_seconds")
        let change = last.flatMap { last in
            isSame && seconds > last.seconds
                ? MetricsChange(from: last.metrics, to: metrics, seconds: seconds - last.seconds) : nil
        }
        last = (metrics, seconds)
        let none = MetricsChange(from: metrics, to: metrics, seconds: 1)
        show(change ?? none, metrics)
        append(
            requests: change.map { _ in methods.reduce(0) { $0 + $1.requests } },
            errors: change.map { _ in methods.reduce(0) { $0 + $1.errors } }, hitRatio)
    }

    /// The daemon does not reply.
    mutating func lose(_ reason: String) {
        problem = reason
        append(requests: nil, errors: nil, nil)
    }

    private mutating func show(_ change: MetricsChange, _ metrics: MetricsReader) {
        cpu = change.rate("process_cpu_seconds_total")
        let (hits, misses) = (change.rate("crudd_cache_hits_total") ?? 0, change.rate("crudd_cache_misses_total") ?? 0)
        hitRatio = hits + misses > 0 ? hits / (hits + misses) : nil
        methods = change.methods
        collections = change.collections.map { Rate(name: $0.key, requests: $0.value) }.sortedByRequests
        backends = metrics["crudd_backend_state"].filter { $0.value == 1 }.map { sample in
            let name = sample.labels["backend"] ?? ""
            let labels = ["backend": name]
            func value(_ metric: String) -> Double { metrics[metric].first { $0.labels == labels }?.value ?? 0 }
            let sizes = change.histogram("crudd_backend_batch_size", labels)
            return Backend(
                name: name, state: sample.labels["state"] ?? "", queue: value("crudd_backend_queue_length"),
                batch: sizes.mean,
                slowest: change.histogram("crudd_backend_write_duration_seconds", labels).quantile(0.99),
                restarts: value("crudd_backend_restarts_total"))
        }
    }

    private mutating func append(requests: Double?, errors: Double?, _ hitRatio: Double?) {
        self.requests = (self.requests + [requests]).suffix(Self.historyLength)
        self.errors = (self.errors + [errors]).suffix(Self.historyLength)
        hitRatios = (hitRatios + [hitRatio]).suffix(Self.historyLength)
    }

    private static func moves(_ metrics: MetricsReader) -> [Move] {
        metrics["crudd_move_state"].map { sample in
            let collection = sample.labels["collection"] ?? ""
            func value(_ metric: String) -> Double {
                metrics[metric].first { $0.labels["collection"] == collection }?.value ?? 0
            }
            return Move(
                collection: collection, state: sample.labels["state"] ?? "",
                copied: value("crudd_move_copied_records"), total: value("crudd_move_records"))
        }
    }
}

extension [TopState.Rate] {
    fileprivate var sortedByRequests: Self {
        sorted { ($1.requests, $0.name) < ($0.requests, $1.name) }
    }
}

/// The difference between two texts of metrics.
private struct MetricsChange {
    let from: MetricsReader
    let to: MetricsReader
    let seconds: Double

    /// How fast a counter without labels rises.
    func rate(_ name: String) -> Double? {
        guard let before = from.value(name), let now = to.value(name) else { return nil }
        return (now - before) / seconds
    }

    /// How fast counters rise, summed up by one of their labels.
    func rates(
        _ name: String, by label: String, where isIncluded: (MetricsReader.Sample) -> Bool = { _ in true }
    ) -> [String: Double] {
        // Counters are integers, whose sums are exact: what has not changed has a rate of 0.
        var changes: [String: Double] = [:]
        for (metrics, sign) in [(to, 1.0), (from, -1.0)] {
            for sample in metrics[name] where isIncluded(sample) {
                // One that is gone has no rate.
                guard sign > 0 || changes[sample.labels[label] ?? ""] != nil else { continue }
                changes[sample.labels[label] ?? "", default: 0] += sign * sample.value
            }
        }
        return changes.mapValues { max(0, $0) / seconds }
    }

    var collections: [String: Double] {
        let name = "crudd_collection_requests_total"
        let rates = rates(name, by: "collection")
        let before = Set(from[name].compactMap { $0.labels["collection"] })
        // Where not all are told of, one that was not there before has counted for long.
        return before.count < Self.maximumCollections ? rates : rates.filter { before.contains($0.key) }
    }

    /// How many collections the daemon tells of at most.
    private static let maximumCollections = 100

    var methods: [TopState.Rate] {
        let errors = rates("crudd_requests_total", by: "method") { $0.labels["outcome"] != "ok" }
        return rates("crudd_requests_total", by: "method").map { method, requests in
            let durations = histogram("crudd_request_duration_seconds", ["method": method])
            return TopState.Rate(
                name: method, requests: requests, errors: errors[method] ?? 0, median: durations.quantile(0.5),
                slowest: durations.quantile(0.99))
        }.sortedByRequests
    }

    func histogram(_ name: String, _ labels: [String: String]) -> HistogramChange {
        func buckets(_ metrics: MetricsReader) -> [(bound: Double, count: Double)] {
            metrics["\(name)_bucket"].compactMap { sample in
                var rest = sample.labels
                guard let bound = rest.removeValue(forKey: "le"), rest == labels else { return nil }
                return (bound == "+Inf" ? .infinity : Double(bound) ?? 0, sample.value)
            }
        }
        func sum(_ metrics: MetricsReader) -> Double {
            metrics["\(name)_sum"].first { $0.labels == labels }?.value ?? 0
        }
        let before = Dictionary(buckets(from).map { ($0.bound, $0.count) }, uniquingKeysWith: { $1 })
        let times = to.histogram(name, labels).map { $0.since(from.histogram(name, labels) ?? LogLinearHistogram()) }
        return HistogramChange(
            times: times, buckets: buckets(to).map { ($0.bound, $0.count - (before[$0.bound] ?? 0)) },
            sum: sum(to) - sum(from))
    }
}

/// What has been added to a histogram.
struct HistogramChange {
    /// In nanoseconds; nil where only the buckets are known.
    var times: LogLinearHistogram?
    /// How many values were at most that.
    var buckets: [(bound: Double, count: Double)]
    var sum: Double

    var mean: Double? {
        guard let count = buckets.last?.count, count > 0 else { return nil }
        return sum / count
    }

    /// The value that so many of the others are below, from 0 to 1; where only the buckets are known, as if the values
    /// were distributed evenly within each. Nil where there are none.
    func quantile(_ part: Double) -> Double? {
        if let times { return times.quantile(part).map { Double($0) / 1e9 } }
        guard let count = buckets.last?.count, count > 0 else { return nil }
        let rank = part * count
        var lower = (bound: 0.0, count: 0.0)
        for bucket in buckets {
            if bucket.count >= rank, bucket.count > lower.count {
                guard bucket.bound.isFinite else { return lower.bound }
                return lower.bound + (bucket.bound - lower.bound) * (rank - lower.count) / (bucket.count - lower.count)
            }
            lower = bucket
        }
        return lower.bound
    }
}
