/// How long experiments take, and what clients notice of them.
struct ExperimentReport {
    private var moves: [Finding.Move] = []
    private var builds: [Finding.Build] = []
    private var expirations: [Finding.Expiration] = []
    /// By operation.
    private var runs: [Experiment: [String: DisturbedRuns]] = [:]

    mutating func add(_ move: Finding.Move) { moves.append(move) }
    mutating func add(_ build: Finding.Build) { builds.append(build) }
    mutating func add(_ expiration: Finding.Expiration) { expirations.append(expiration) }

    mutating func add(_ run: Finding.Measurement, _ experiment: Experiment) {
        runs[experiment, default: [:]][run.operation, default: DisturbedRuns()]
            .add(run, isDisturbed: run.isDisturbed == true)
    }

    var markdown: String {
        let sections = Experiment.allCases.flatMap { experiment in
            [lines(of: experiment).joined(separator: "\n"), latencies(beside: experiment)]
        }
        return sections.filter { !$0.isEmpty }.joined(separator: "\n\n")
    }

    private func lines(of experiment: Experiment) -> [String] {
        switch experiment {
        case .move: moveLines
        case .indexes: builds.map { "- \($0.summary), kept: \(Report.verdict($0.restarts == 0))" }
        case .expiry:
            expirations.map { "- \($0.summary), kept: \(Report.verdict($0.seconds <= Promise.removalSeconds))" }
        }
    }

    private var moveLines: [String] {
        guard !moves.isEmpty else { return [] }
        func speed(_ moves: [Finding.Move]) -> Double { Report.median(moves.map(\.recordsPerSecond)) }
        let idle = speed(moves.filter { $0.beside == nil })
        let promise =
            "- a move between SQLite files on an idle daemon: \((idle / 1000).text(digits: 1)) k records/s "
            + "(promised ≥ \((Promise.movedPerSecond / 1000).text(digits: 0)), "
            + "kept: \(Report.verdict(idle >= Promise.movedPerSecond)))"
        let loaded = moves.filter { $0.beside != nil }
        guard let load = loaded.first?.beside else { return [promise] }
        return [promise, "- beside \(load): \((speed(loaded) / 1000).text(digits: 1)) k records/s"]
    }

    private func latencies(beside experiment: Experiment) -> String {
        let most = experiment.promisedSlowdown
        let lines = (runs[experiment] ?? [:]).sorted { $0.key < $1.key }.compactMap { operation, runs -> String? in
            guard runs.isComplete else { return nil }
            let cells = [operation] + runs.cells + (most.map { [Report.verdict(runs.ratio <= $0)] } ?? [])
            return "| \(cells.joined(separator: " | ")) |"
        }
        guard !lines.isEmpty else { return "" }
        let head =
            ["operation", "without it", "with it", "p99, times"] + (most.map { ["≤ \($0.text(digits: 0))"] } ?? [])
        return "Clients of a collection \(experiment.heading) (p50 / p99, µs; medians of the rounds):\n\n"
            + "| \(head.joined(separator: " | ")) |\n|\(String(repeating: " --- |", count: head.count))\n"
            + lines.joined(separator: "\n")
    }
}
