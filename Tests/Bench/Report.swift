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
        let depth: Int
        let placement: String

        fileprivate init(_ run: Finding.Measurement) {
            operation = run.operation
            ids = run.ids
            connections = run.connections
            depth = run.depth
            placement = run.placement
        }

        fileprivate var title: String {
            let cpus = placement == "free" ? "" : ", on \(placement) CPU\(placement == "one" ? "" : "s")"
            return "\(operation), \(ids) ids\(cpus) | \(connections) | \(depth)"
        }
    }

    private static let targets = ["echo", "crudd", "changes", "isolated", "redis", "postgresql", "adapter"]
    private static let names = [
        "echo": "echo", "crudd": "crudd", "changes": "crudd with changes", "isolated": "crudd, plugin in a child",
        "redis": "Redis", "postgresql": "PostgreSQL", "adapter": "crudd on PostgreSQL",
    ]

    private var rows: [Row] = []
    private var runs: [Row: [String: [Finding.Measurement]]] = [:]
    private var longRuns: [Finding.Measurement] = []
    private var kills = KillReport()
    private var moves = MoveReport()
    private var starts: [Finding.Start] = []
    private var sizes: [Finding.Size] = []
    private var scans: [Finding.Scan] = []
    private var followings: [Finding.Following] = []
    private var notes: [Finding.Note] = []

    init(_ findings: [Finding]) {
        for finding in findings {
            switch finding {
            case .measurement(let run) where run.beside != nil: longRuns.append(run)
            case .measurement(let run) where run.kills != nil: kills.add(run)
            case .measurement(let run) where run.isBesideMove != nil: moves.add(run)
            case .measurement(let run): add(run)
            case .start(let start): starts.append(start)
            case .size(let size): sizes.append(size)
            case .scan(let scan): scans.append(scan)
            case .following(let following): followings.append(following)
            case .move(let move): moves.add(move)
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
        [title, figures, promises, others, moves.markdown, longRun, kills.markdown]
            .filter { !$0.isEmpty }.joined(separator: "\n\n")
    }

    private var title: String {
        "# crudd beside its peers\n\n" + notes.map { "- \($0.name): \($0.value)" }.joined(separator: "\n")
    }

    private var figures: String {
        guard !rows.isEmpty else { return "" }
        let present = Self.targets.filter { target in runs.values.contains { $0[target] != nil } }
        let ratios: [(target: String, peer: String)] =
            !present.contains("crudd")
            ? []
            : present.filter { $0 != "crudd" }.map { target in
                switch target {
                case "isolated", "changes": (target, "crudd")
                case "adapter": (target, "postgresql")
                default: ("crudd", target)
                }
            }
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
        guard let measurements = runs[row]?[target] else { return "" }
        func median(_ value: (Finding.Measurement) -> Double) -> Double { Self.median(measurements.map(value)) }
        let server = measurements.compactMap(\.serverMicroseconds)
        return (median(\.requestsPerSecond) / 1000).text(digits: 1)
            + " (\(median(\.p50Microseconds).text(digits: 0)) / \(median(\.p99Microseconds).text(digits: 0))"
            + (server.isEmpty ? ")" : "; \(Self.median(server).text(digits: 1)))")
    }

    /// The throughput of `target` divided by that of `peer`.
    private func ratio(_ row: Row, _ target: String, _ peer: String) -> Double? {
        guard let runs = runs[row]?[target], let others = self.runs[row]?[peer] else { return nil }
        let ratios = runs.flatMap { run in
            others.filter { $0.round == run.round }.map { run.requestsPerSecond / $0.requestsPerSecond }
        }
        return ratios.isEmpty ? nil : Self.median(ratios)
    }

    private var promises: String {
        var lines: [String] = []
        for promise in Promise.all {
            for row in rows where promise.covers(row) {
                guard let ratio = ratio(row, promise.target, promise.peer) else { continue }
                let floor = self.ratio(row, "echo", promise.peer)?.text(digits: 2) ?? ""
                let ratioName = "\(Self.name(promise.target)) / \(Self.name(promise.peer))"
                lines.append(
                    "| \(row.title) | \(ratioName) ≥ \(promise.atLeast.text(digits: 2)) | "
                        + "\(ratio.text(digits: 2)) | \(floor) | \(Self.verdict(ratio >= promise.atLeast)) |")
            }
        }
        guard !lines.isEmpty else { return "" }
        return "| operation | c | d | promised | measured | an echo's | kept |\n"
            + "| --- | --- | --- | --- | --- | --- | --- |\n"
            + lines.joined(separator: "\n")
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

    private static func name(_ target: String) -> String { names[target] ?? target }

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
