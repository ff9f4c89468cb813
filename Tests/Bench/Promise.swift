/// What crudd has to reach in a row.
struct Promise {
    enum Bound {
        /// The throughput divided by that of another target.
        case throughput(of: String, atLeast: Double)
        /// The 99th percentile of latencies divided by that of another target.
        case p99(of: String, atMost: Double)
        /// The quantile 0.999, likewise.
        case p999(of: String, atMost: Double)
        /// The server's for each request, in microseconds.
        case processorTime(atMost: Double)
    }

    private let operation: String
    private let ids: String
    private let connections: Int
    private let depth: Int
    let target: String
    let bound: Bound
    /// The CPUs of client and server; nil: any.
    private let placement: String?

    private init(
        _ operation: String, _ ids: String, _ connections: Int, _ depth: Int, _ bound: Bound,
        target: String = "crudd", placement: String? = nil
    ) {
        self.target = target
        self.operation = operation
        self.ids = ids
        self.connections = connections
        self.depth = depth
        self.bound = bound
        self.placement = placement
    }

    private init(
        _ operation: String, _ ids: String, _ connections: Int, _ depth: Int, _ peer: String, _ floor: Double,
        target: String = "crudd", placement: String? = nil
    ) {
        self.init(
            operation, ids, connections, depth, .throughput(of: peer, atLeast: floor), target: target,
            placement: placement)
    }

    /// Whether it applies to a workload.
    func covers(_ row: Report.Row) -> Bool {
        (operation, ids) == (row.operation, row.ids) && (connections, depth) == (row.connections, row.depth)
            && (placement == nil || placement == row.placement) && row.isPlain
    }

    static let all = [
        Promise("read", "hot", 1, 1, "redis", 1, placement: "free"),
        Promise("read", "hot", 16, 1, "redis", 1),
        Promise("read", "hot", 50, 1, "redis", 1),
        Promise("read", "hot", 50, 16, "redis", 0.9),
        Promise("read", "hot", 1, 1, "redis", 0.9, target: "isolated", placement: "free"),
        Promise("read", "hot", 16, 1, "redis", 0.9, target: "isolated"),
        Promise("read", "hot", 50, 1, "redis", 0.9, target: "isolated"),
        Promise("read", "hot", 50, 16, "redis", 0.81, target: "isolated"),
        Promise("read", "hot", 50, 1, .p99(of: "redis", atMost: 1.3)),
        Promise("read", "hot", 16, 1, .processorTime(atMost: 6)),
        Promise("read", "hot", 1, 1, "redis", 0.9, target: "plist", placement: "free"),
        Promise("read", "hot", 16, 1, "redis", 0.9, target: "plist"),
        Promise("read", "hot", 50, 1, "redis", 0.9, target: "plist"),
        Promise("read", "hot", 50, 16, "redis", 0.81, target: "plist"),
        Promise("read", "hot", 1, 1, "redis", 0.9, target: "sleeping", placement: "one"),
        Promise("read", "random", 50, 1, "redis", 0.45),
        Promise("read", "random", 50, 16, "redis", 0.3),
        Promise("create", "rising", 1, 1, "redis", 0.9, placement: "free"),
        Promise("create", "rising", 16, 1, "redis", 1.2),
        Promise("create", "rising", 50, 1, "redis", 1.3),
        Promise("create", "random", 16, 1, "redis", 1),
        Promise("create", "random", 50, 1, "redis", 1),
        Promise("upsert", "random", 16, 1, "redis", 1),
        Promise("upsert", "random", 50, 1, "redis", 1),
        Promise("upsert", "random", 50, 16, "redis", 0.35),
        Promise("read", "random", 1, 1, "postgresql", 2),
        Promise("read", "random", 16, 1, "postgresql", 3),
        Promise("read", "random", 50, 1, "postgresql", 3),
        Promise("create", "rising", 1, 1, "postgresql", 1),
        Promise("create", "rising", 16, 1, "postgresql", 2),
        Promise("create", "rising", 50, 1, "postgresql", 2),
        Promise("query", "random", 1, 1, "postgresql", 0.5, placement: "one"),
        Promise("query", "random", 1, 1, "postgresql", 1, placement: "free"),
        // Records in memory with a log.
        Promise("create", "random", 16, 1, "redis", 1.2, target: "logged"),
        Promise("create", "random", 50, 1, "redis", 1.2, target: "logged"),
        Promise("create", "rising", 50, 16, "redis", 1, target: "logged"),
        Promise("upsert", "random", 16, 1, "redis", 1.2, target: "logged"),
        Promise("upsert", "random", 50, 1, "redis", 1.2, target: "logged"),
        Promise("upsert", "random", 50, 16, "redis", 1, target: "logged"),
        Promise("upsert", "random", 16, 1, .p999(of: "redis", atMost: 2), target: "logged"),
        Promise("upsert", "random", 50, 1, .p999(of: "redis", atMost: 2), target: "logged"),
        Promise("upsert", "random", 50, 16, .p999(of: "redis", atMost: 2), target: "logged"),
        // What the daemon costs or gains in front of a server.
        Promise("read", "random", 1, 1, "postgresql", 0.5, target: "adapter"),
        Promise("read", "random", 50, 1, "postgresql", 1.5, target: "adapter"),
        Promise("create", "rising", 1, 1, "postgresql", 0.7, target: "adapter"),
        Promise("create", "rising", 16, 1, "postgresql", 1.2, target: "adapter"),
        Promise("create", "rising", 50, 1, "postgresql", 1.5, target: "adapter"),
        Promise("query", "random", 1, 1, "postgresql", 0.6, target: "adapter"),
        // The cost of isolation.
        Promise("read", "random", 1, 1, "crudd", 0.5, target: "isolated"),
        Promise("read", "random", 16, 1, "crudd", 0.7, target: "isolated"),
        Promise("create", "rising", 1, 1, "crudd", 0.5, target: "isolated"),
        Promise("create", "rising", 16, 1, "crudd", 0.7, target: "isolated"),
        // The cost of remembered changes.
        Promise("create", "rising", 16, 1, "crudd", 0.85, target: "changes"),
        // The cost of expiry for records that do not expire: none that can be measured.
        Promise("create", "rising", 16, 1, "crudd", 0.95, target: "expiring"),
    ]

    /// The ratio by which latencies of other backends may grow while a child is killed repeatedly.
    static let slowdownBesideKills = 2.0
    static let recoveryMilliseconds = 1000.0
    static let readyMilliseconds = 50.0
    static let residentMiB = 20.0
    static let writeAheadLogMiB = 64.0
    static let movedPerSecond = 20_000.0
    /// Until all of a million expired records are deleted.
    static let removalSeconds = 60.0
    /// By how much longer a drop, or a reload of one line, may take with 10 000 collections than with 100.
    static let crowdRatio = 2.0
    /// By how many collections there are.
    static let readyMillisecondsByCollections = [10: 15.0, 10_000: 150.0]
    /// By how much resident memory may grow in a thousand drops and reloads.
    static let crowdGrownMiB = 4.0
    static let bytesPerCachedRecord = 400.0
    /// By target.
    static let scannedPerSecond = ["crudd": 2_000_000.0, "isolated": 1_000_000.0, "logged": 2_000_000.0]
}
