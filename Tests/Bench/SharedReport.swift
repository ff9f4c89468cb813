/// What several daemons do together that share a schema of one PostgreSQL server, beside clients of that server.
struct SharedReport {
    private struct Row: Hashable {
        var operation: String
        var connections: Int
    }

    private var rows: [Row] = []
    /// By the number of daemons; 0: without crudd.
    private var runs: [Row: [Int: [Finding.Shared]]] = [:]

    mutating func add(_ run: Finding.Shared) {
        let row = Row(operation: run.operation, connections: run.connections)
        if runs[row] == nil { rows.append(row) }
        runs[row, default: [:]][run.daemons, default: []].append(run)
    }

    var markdown: String {
        guard !rows.isEmpty else { return "" }
        let counts = Set(runs.values.flatMap(\.keys)).subtracting([0]).sorted()
        let head =
            ["operation", "connections", "pgbench, k/s"]
            + counts.map { "\($0) daemon\($0 == 1 ? "" : "s"), k/s (ratio)" }
        let lines = rows.map { row in
            let cells = counts.map { "\(pace(row, $0)) (\(ratio(row, $0)))" }
            return "| \(([row.operation, "\(row.connections)", pace(row, 0)] + cells).joined(separator: " | ")) |"
        }
        return
            "Daemons that share a schema, with as many connections in all (medians of the rounds and of their ratios "
            + "to pgbench):\n\n| \(head.joined(separator: " | ")) |\n"
            + "|\(String(repeating: " --- |", count: head.count))\n" + lines.joined(separator: "\n")
    }

    private func pace(_ row: Row, _ daemons: Int) -> String {
        let paces = (runs[row]?[daemons] ?? []).map { $0.requestsPerSecond / 1000 }
        return paces.isEmpty ? "" : Report.median(paces).text(digits: 1)
    }

    private func ratio(_ row: Row, _ daemons: Int) -> String {
        let peers = Dictionary((runs[row]?[0] ?? []).map { ($0.round, $0.requestsPerSecond) }) { first, _ in first }
        let ratios = (runs[row]?[daemons] ?? []).compactMap { run in
            peers[run.round].map { run.requestsPerSecond / $0 }
        }
        return ratios.isEmpty ? "" : Report.median(ratios).text(digits: 2)
    }
}
