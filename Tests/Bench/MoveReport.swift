/// How fast collections are moved, and what their clients notice of it.
struct MoveReport {
    private var moves: [Finding.Move] = []
    private var operations: [String] = []
    private var runs: [String: DisturbedRuns] = [:]

    mutating func add(_ move: Finding.Move) { moves.append(move) }

    mutating func add(_ run: Finding.Measurement) {
        if runs[run.operation] == nil { operations.append(run.operation) }
        runs[run.operation, default: DisturbedRuns()].add(run, isDisturbed: run.isBesideMove == true)
    }

    var markdown: String {
        guard !moves.isEmpty else { return "" }
        return ([speeds] + (operations.isEmpty ? [] : [latencies])).joined(separator: "\n\n")
    }

    private var speeds: String {
        func speed(_ moves: [Finding.Move]) -> Double { Report.median(moves.map(\.recordsPerSecond)) }
        let idle = speed(moves.filter { $0.beside == nil })
        var lines = [
            "- a move between SQLite files on an idle daemon: \((idle / 1000).text(digits: 1)) k records/s "
                + "(promised ≥ \((Promise.movedPerSecond / 1000).text(digits: 0)), "
                + "kept: \(Report.verdict(idle >= Promise.movedPerSecond)))"
        ]
        let loaded = moves.filter { $0.beside != nil }
        if let load = loaded.first?.beside {
            lines.append("- beside \(load): \((speed(loaded) / 1000).text(digits: 1)) k records/s")
        }
        return lines.joined(separator: "\n")
    }

    private var latencies: String {
        let lines = operations.sorted().compactMap { operation -> String? in
            guard let runs = runs[operation], runs.isComplete else { return nil }
            return "| \(operation) | \(runs.cells.joined(separator: " | ")) |"
        }
        return "Clients of a collection while it is moved (p50 / p99, µs; medians of the rounds):\n\n"
            + "| operation | without a move | with a move | p99, times |\n|\(String(repeating: " --- |", count: 4))\n"
            + lines.joined(separator: "\n")
    }
}
