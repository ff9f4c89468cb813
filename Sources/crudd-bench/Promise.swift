/// A ratio that crudd is meant to reach, at least.
struct Promise {
    private let operation: String
    private let ids: String
    private let connections: Int
    private let depth: Int
    let target: String
    let peer: String
    let atLeast: Double

    private init(
        _ operation: String, _ ids: String, _ connections: Int, _ depth: Int, _ peer: String, _ floor: Double,
        target: String = "crudd"
    ) {
        self.target = target
        self.operation = operation
        self.ids = ids
        self.connections = connections
        self.depth = depth
        self.peer = peer
        atLeast = floor
    }

    /// Whether it holds for that workload; it does on any CPUs.
    func covers(_ row: Report.Row) -> Bool {
        (operation, ids) == (row.operation, row.ids) && (connections, depth) == (row.connections, row.depth)
    }

    static let all = [
        Promise("read", "random", 1, 1, "redis", 0.8),
        Promise("read", "random", 50, 1, "redis", 0.6),
        Promise("read", "random", 50, 16, "redis", 0.35),
        Promise("create", "rising", 1, 1, "redis", 0.75),
        Promise("create", "rising", 16, 1, "redis", 1),
        Promise("create", "rising", 50, 1, "redis", 1),
        Promise("read", "random", 1, 1, "postgresql", 2),
        Promise("read", "random", 16, 1, "postgresql", 2),
        Promise("read", "random", 50, 1, "postgresql", 2),
        Promise("create", "rising", 1, 1, "postgresql", 1),
        Promise("create", "rising", 16, 1, "postgresql", 2),
        Promise("create", "rising", 50, 1, "postgresql", 2),
        Promise("query", "random", 1, 1, "postgresql", 0.5),
        // What isolation costs.
        Promise("read", "random", 1, 1, "crudd", 0.5, target: "isolated"),
        Promise("read", "random", 16, 1, "crudd", 0.7, target: "isolated"),
        Promise("create", "rising", 1, 1, "crudd", 0.5, target: "isolated"),
        Promise("create", "rising", 16, 1, "crudd", 0.7, target: "isolated"),
    ]

    /// How much longer another backend's requests may take while a child is killed again and again.
    static let slowdownBesideKills = 2.0
    static let backMilliseconds = 1000.0
    static let readyMilliseconds = 100.0
    static let residentMiB = 30.0
    static let writeAheadLogMiB = 64.0
    static let scannedPerSecond = 500_000.0
}
