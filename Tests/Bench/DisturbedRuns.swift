/// The runs of one workload, each round without and with a disturbance.
struct DisturbedRuns {
    private var quiet: [Int: Finding.Measurement] = [:]
    private(set) var disturbed: [Int: Finding.Measurement] = [:]

    mutating func add(_ run: Finding.Measurement, isDisturbed: Bool) {
        if isDisturbed { disturbed[run.round] = run } else { quiet[run.round] = run }
    }

    var isComplete: Bool { !quiet.isEmpty && !disturbed.isEmpty }

    /// How many times the 99th percentile without it is that with the disturbance.
    var ratio: Double {
        Report.median(
            disturbed.compactMap { round, run in quiet[round].map { run.p99Microseconds / $0.p99Microseconds } })
    }

    /// The latencies without the disturbance, with it, and the ratio.
    var cells: [String] {
        [Self.latencies(quiet.values), Self.latencies(disturbed.values), ratio.text(digits: 2)]
    }

    private static func latencies(_ runs: some Sequence<Finding.Measurement>) -> String {
        let p50 = Report.median(runs.map(\.p50Microseconds))
        let p99 = Report.median(runs.map(\.p99Microseconds))
        return "\(p50.text(digits: 0)) / \(p99.text(digits: 0))"
    }
}
