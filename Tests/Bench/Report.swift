/// The results of a run: medians over its rounds, and ratios.
///
/// A ratio is the median of the rounds' ratios, not the ratio of two medians: the targets of a row are measured
/// directly one after another in each round, so that a machine that becomes slower affects both.
struct Report {
    /// One workload, whatever the target.
    struct Row: Hashable {
        let operation: String
        let ids: String
        let connections: Int
        /// So many of them send requests; nil: all.
        let active: Int?
        let depth: Int
        let placement: String
        let valueBytes: Int

        /// The size of items for which promises are made.
        private static let plainBytes = 200

        fileprivate init(_ run: Finding.Measurement) {
            operation = run.operation
            ids = run.ids
            connections = run.connections
            active = run.active
            depth = run.depth
            placement = run.placement
            valueBytes = run.valueBytes ?? Self.plainBytes
        }

        /// Whether promises apply to it.
        var isPlain: Bool { active == nil && valueBytes == Self.plainBytes }

        /// The first three cells of its line.
        var title: String {
            let cpus = placement == "free" ? "" : ", on \(placement) CPU\(placement == "one" ? "" : "s")"
            let size = valueBytes == Self.plainBytes ? "" : ", \(valueBytes) B"
            let idle = active.map { ", \($0) active" } ?? ""
            return "\(operation), \(ids) ids\(size)\(cpus) | \(connections)\(idle) | \(depth)"
        }
    }

    private static let targets = [
        "echo", "crudd", "plist", "sleeping", "changes", "expiring", "isolated", "logged", "redis", "postgresql",
        "adapter",
    ]
    private static let names = [
        "echo": "echo", "crudd": "crudd", "plist": "crudd, property lists", "sleeping": "crudd, busy_poll: 0us",
        "changes": "crudd with changes", "expiring": "crudd beside expiring records",
        "isolated": "crudd, plugin in a child", "logged": "crudd, durable memory", "redis": "Redis",
        "postgresql": "PostgreSQL", "adapter": "crudd on PostgreSQL",
    ]

    /// The ratio that a target's column is followed by.
    private static func ratio(with target: String) -> (target: String, peer: String) {
        switch target {
        case "plist", "sleeping", "changes", "expiring", "isolated": (target, "crudd")
        case "logged": (target, "redis")
        case "adapter": (target, "postgresql")
        default: ("crudd", target)
        }
    }

    private(set) var rows: [Row] = []
    private var runs: [Row: [String: [Finding.Measurement]]] = [:]
    private var longRuns: [Finding.Measurement] = []
    private var kills = KillReport()
    private var experiments = ExperimentReport()
    private var crowds = CrowdReport()
    private var shared = SharedReport()
    private var starts: [Finding.Start] = []
    private var sizes: [Finding.Size] = []
    private var scans: [Finding.Scan] = []
    private var followings: [Finding.Following] = []
    private var caches: [Finding.Cached] = []
    private var notes: [Finding.Note] = []

    init(_ findings: [Finding]) {
        for finding in findings {
            switch finding {
            case .measurement(let run) where run.beside != nil: longRuns.append(run)
            case .measurement(let run) where run.kills != nil: kills.add(run)
            case .measurement(let run):
                if let experiment = run.experiment { experiments.add(run, experiment) } else { add(run) }
            case .start(let start): starts.append(start)
            case .size(let size): sizes.append(size)
            case .scan(let scan): scans.append(scan)
            case .following(let following): followings.append(following)
            case .move(let move): experiments.add(move)
            case .build(let build): experiments.add(build)
            case .expiration(let expiration): experiments.add(expiration)
            case .cached(let cached): caches.append(cached)
            case .crowd(let crowd): crowds.add(crowd)
            case .shared(let run): shared.add(run)
            case .note(let note): notes.append(note)
            }
        }
    }

    private mutating func add(_ run: Finding.Measurement) {
        let row = Row(run)
        if runs[row] == nil { rows.append(row) }
        runs[row, default: [:]][run.target, default: []].append(run)
    }

    var markdown: String {
        let sections = [
            title, figures, promises, others, experiments.markdown, crowds.markdown, shared.markdown, longRun,
            kills.markdown,
        ]
        return sections.filter { !$0.isEmpty }.joined(separator: "\n\n")
    }

    private var title: String {
        "# crudd beside its peers\n\n" + notes.map { "- \($0.name): \($0.value)" }.joined(separator: "\n")
    }

    private var figures: String {
        guard !rows.isEmpty else { return "" }
        let present = Self.targets.filter { target in runs.values.contains { $0[target] != nil } }
        let ratios = present.contains("crudd") ? present.filter { $0 != "crudd" }.map(Self.ratio) : []
        let head =
            ["operation", "c", "d"] + present.map(Self.name)
            + ratios.map { "\(Self.name($0.target)) / \(Self.name($0.peer))" }
        let lines = rows.map { row in
            let cells =
                present.map { cell(row, $0) }
                + ratios.map { ratio(row, $0.target, $0.peer)?.text(digits: 2) ?? "" }
            return "| \(row.title) | \(cells.joined(separator: " | ")) |"
        }
        return
            "k requests/s (p50 / p99, µs; processor time of the server for each, µs); c connections, d requests in "
            + "flight on each; medians of the rounds.\n\n"
            + "| \(head.joined(separator: " | ")) |\n|\(String(repeating: " --- |", count: head.count))\n"
            + lines.joined(separator: "\n")
    }

    private func cell(_ row: Row, _ target: String) -> String {
        guard let pace = median(row, target, \.requestsPerSecond), let p50 = median(row, target, \.p50Microseconds),
            let p99 = median(row, target, \.p99Microseconds)
        else { return "" }
        let server = median(row, target, \.serverMicroseconds).map { "; \($0.text(digits: 1))" } ?? ""
        return "\((pace / 1000).text(digits: 1)) (\(p50.text(digits: 0)) / \(p99.text(digits: 0))\(server))"
    }

    /// The targets that a row has.
    func targets(of row: Row) -> [String] { Self.targets.filter { runs[row]?[$0] != nil } }

    /// The median of a target's runs.
    func median(_ row: Row, _ target: String, _ value: (Finding.Measurement) -> Double?) -> Double? {
        let values = runs[row]?[target]?.compactMap(value) ?? []
        return values.isEmpty ? nil : Self.median(values)
    }

    /// The throughput of `target`, or another quantity, divided by that of `peer`.
    func ratio(
        _ row: Row, _ target: String, _ peer: String, _ value: (Finding.Measurement) -> Double = \.requestsPerSecond
    ) -> Double? {
        guard let runs = runs[row]?[target], let others = self.runs[row]?[peer] else { return nil }
        let ratios = runs.flatMap { run in
            others.filter { $0.round == run.round }.map { value(run) / value($0) }
        }
        return ratios.isEmpty ? nil : Self.median(ratios)
    }

    private var promises: String {
        let lines = Promise.all.flatMap { promise in
            rows.filter(promise.covers).compactMap { line(promise, $0) }
        }
        guard !lines.isEmpty else { return "" }
        return "| operation | c | d | promised | measured | an echo's | kept |\n"
            + "| --- | --- | --- | --- | --- | --- | --- |\n"
            + lines.joined(separator: "\n")
    }

    private func line(_ promise: Promise, _ row: Row) -> String? {
        let name = Self.name(promise.target)
        let promised: String
        let measured: Double?
        let isKept: (Double) -> Bool
        var floor: Double?
        switch promise.bound {
        case .throughput(let peer, let least):
            promised = "\(name) / \(Self.name(peer)) ≥ \(least.text(digits: 2))"
            measured = ratio(row, promise.target, peer)
            isKept = { $0 >= least }
            floor = ratio(row, "echo", peer)
        case .p99(let peer, let most):
            promised = "p99 of \(name) / \(Self.name(peer)) ≤ \(most.text(digits: 2))"
            measured = ratio(row, promise.target, peer, \.p99Microseconds)
            isKept = { $0 <= most }
        case .p999(let peer, let most):
            promised = "p99.9 of \(name) / \(Self.name(peer)) ≤ \(most.text(digits: 2))"
            measured = ratio(row, promise.target, peer, \.p999Microseconds)
            isKept = { $0 <= most }
        case .processorTime(let most):
            promised = "processor time of \(name) ≤ \(most.text(digits: 2)) µs"
            measured = median(row, promise.target, \.serverMicroseconds)
            isKept = { $0 <= most }
        }
        return measured.map { measured in
            "| \(row.title) | \(promised) | \(measured.text(digits: 2)) | \(floor?.text(digits: 2) ?? "") | "
                + "\(Self.verdict(isKept(measured))) |"
        }
    }

    /// Results that are neither throughput nor latency.
    private var others: String {
        var lines: [String] = []
        for start in starts {
            let ready = Self.median(start.readyMilliseconds)
            let resident = Self.median(start.residentKiB.map { Double($0) / 1024 })
            lines.append(
                "- \(start.target) from start to READY: \(ready.text(digits: 1)) ms "
                    + "(promised ≤ \(Promise.readyMilliseconds.text(digits: 0)), "
                    + "kept: \(Self.verdict(ready <= Promise.readyMilliseconds)))")
            lines.append(
                "- \(start.target) resident memory when idle: \(resident.text(digits: 1)) MiB "
                    + "(promised ≤ \(Promise.residentMiB.text(digits: 0)), "
                    + "kept: \(Self.verdict(resident <= Promise.residentMiB)))")
        }
        lines += scans.map { scan in
            let promised = Promise.scannedPerSecond[scan.target] ?? 0
            return
                "- \(Self.name(scan.target)) scans \((scan.recordsPerSecond / 1000).text(digits: 0)) k records/s for a "
                + "filter without an index (promised ≥ \((promised / 1000).text(digits: 0)), "
                + "kept: \(Self.verdict(scan.recordsPerSecond >= promised)))"
        }
        lines += caches.map { cached in
            let bytes = Double(cached.residentBytes) / Double(max(cached.records, 1))
            return
                "- resident memory of a cached record: \(bytes.text(digits: 0)) B, over \(cached.records) records "
                + "(promised ≤ \(Promise.bytesPerCachedRecord.text(digits: 0)), "
                + "kept: \(Self.verdict(bytes <= Promise.bytesPerCachedRecord)))"
        }
        lines += followings.map { "- \($0.summary)" }
        lines += sizes.map { "- \($0.name): \((Double($0.bytes) / 1_048_576).text(digits: 1)) MiB" }
        return lines.joined(separator: "\n")
    }

    private var longRun: String {
        guard !longRuns.isEmpty else { return "" }
        let lines = longRuns.map { run in
            let pace = (run.pace ?? []).map { Double($0) / 1000 }
            let quarter = max(pace.count / 4, 1)
            let logMiB = Double(run.watchedBytesMaximum ?? 0) / 1_048_576
            let cells = [
                run.beside ?? "", (run.requestsPerSecond / 1000).text(digits: 1),
                Self.mean(pace.prefix(quarter)).text(digits: 1), Self.mean(pace.suffix(quarter)).text(digits: 1),
                (pace.min() ?? 0).text(digits: 1), run.p99Microseconds.text(digits: 0), logMiB.text(digits: 1),
                Self.verdict(logMiB <= Promise.writeAheadLogMiB),
            ]
            return "| \(cells.joined(separator: " | ")) |"
        }
        let head = [
            "concurrent load", "k/s", "first quarter", "last quarter", "slowest second", "p99, µs", "largest WAL, MiB",
            "≤ \(Promise.writeAheadLogMiB.text(digits: 0)) MiB",
        ]
        return "Long run of creates, c\(longRuns[0].connections) d\(longRuns[0].depth), "
            + "\(longRuns[0].seconds.text(digits: 0)) s each:\n\n"
            + "| \(head.joined(separator: " | ")) |\n|\(String(repeating: " --- |", count: head.count))\n"
            + lines.joined(separator: "\n")
    }

    static func name(_ target: String) -> String { names[target] ?? target }

    /// Whether it is crudd in some configuration.
    static func isOwn(_ target: String) -> Bool { !["echo", "redis", "postgresql"].contains(target) }

    static func verdict(_ isKept: Bool) -> String { isKept ? "yes" : "**no**" }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    private static func mean(_ values: ArraySlice<Double>) -> Double {
        values.isEmpty ? 0 : values.reduce(0, +) / Double(values.count)
    }
}
