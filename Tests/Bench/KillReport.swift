/// How repeated kills of a child affect the other backends, and how soon its own backend is available again.
struct KillReport {
    /// One backend and one operation.
    private struct Row: Hashable {
        let target: String
        let operation: String
    }

    private static let names = [
        "inline": "crudd", "isolated": "crudd, plugin in another child", "killed": "crudd, plugin in the child",
    ]

    private var rows: [Row] = []
    private var runs: [Row: DisturbedRuns] = [:]

    mutating func add(_ run: Finding.Measurement) {
        let row = Row(target: run.target, operation: run.operation)
        if runs[row] == nil { rows.append(row) }
        runs[row, default: DisturbedRuns()].add(run, isDisturbed: run.kills != 0)
    }

    var markdown: String {
        // The runs end in any order.
        let others = rows.filter { $0.target != "killed" }
        let lines = others.sorted { ($0.target, $1.operation) < ($1.target, $0.operation) }.compactMap(line)
        guard !lines.isEmpty else { return "" }
        let most = Promise.slowdownBesideKills.text(digits: 0)
        return "With a child that is killed every ½ s (p50 / p99, µs; medians of the rounds):\n\n"
            + "| backend | operation | without kills | with kills | p99, times | ≤ \(most) |\n"
            + "|\(String(repeating: " --- |", count: 6))\n"
            + lines.joined(separator: "\n") + (loss.map { "\n\n\($0)" } ?? "")
    }

    private func line(_ row: Row) -> String? {
        guard let runs = runs[row], runs.isComplete else { return nil }
        let verdict = Report.verdict(runs.ratio <= Promise.slowdownBesideKills)
        let cells = [Self.names[row.target] ?? row.target, row.operation] + runs.cells + [verdict]
        return "| \(cells.joined(separator: " | ")) |"
    }

    /// The effect on its own clients.
    private var loss: String? {
        let own = runs.filter { $0.key.target == "killed" }.flatMap(\.value.disturbed.values)
        guard !own.isEmpty else { return nil }
        func sum(_ value: (Finding.Measurement) -> Int?) -> Int { own.reduce(0) { $0 + (value($1) ?? 0) } }
        let pause = own.compactMap(\.longestPauseMilliseconds).max() ?? 0
        return "- its own backend, \(sum(\.kills)) kills: longest time without a success \(pause.text(digits: 0)) ms "
            + "(promised ≤ \(Promise.recoveryMilliseconds.text(digits: 0)), "
            + "kept: \(Report.verdict(pause <= Promise.recoveryMilliseconds))); of \(sum(\.requests)) requests "
            + "\(sum(\.unavailable)) `unavailable`, \(sum(\.outcomeUnknown)) `outcome_unknown`"
    }
}
