import CRUDTestSupport
import Testing

/// What `daemon.metrics` says, read by a parser of somebody else's.
struct MetricSamples {
    /// By `NAME{LABEL="VALUE",…}` with the labels in alphabetical order.
    let values: [String: Double]
    /// The names of the families, in the order of the text; those of counters with `_total`.
    let families: [String]

    private static let program = """
        import sys
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
        for family in text_string_to_metric_families(sys.stdin.read()):
            assert family.documentation, family.name
            print(family.name + ("_total" if family.type == "counter" else ""))
            for sample in family.samples:
                labels = ",".join(f'{k}="{v}"' for k, v in sorted(sample.labels.items()))
                print(f"{sample.name}{{{labels}}}\\t{sample.value}")
        """

    /// - Throws: if prometheus-client's strict parser does not accept the text.
    init(_ text: String) throws {
        let outcome = try Command.run("/usr/bin/python3", ["-c", Self.program], input: text)
        guard outcome.status == .exited(0) else { throw Failure("the parser says: \(outcome.errors)") }
        var values: [String: Double] = [:]
        var families: [String] = []
        for line in outcome.output.split(separator: "\n") {
            let parts = line.split(separator: "\t")
            if parts.count == 2 { values[String(parts[0])] = Double(parts[1]) } else { families.append(String(line)) }
        }
        (self.values, self.families) = (values, families)
    }

    subscript(_ sample: String) -> Double? { values[sample] }

    /// The sum of the samples that begin so.
    func sum(_ prefix: String) -> Double { values.filter { $0.key.hasPrefix(prefix) }.values.reduce(0, +) }
}

extension Connection {
    private func metricsText() throws -> String {
        try #require(try call("daemon.metrics").result?["text"]?.string)
    }

    func metrics() throws -> MetricSamples { try MetricSamples(try metricsText()) }

    /// Waits until a sample, as it stands in the text, has a value.
    func awaitMetric(_ sample: String, _ value: Int) throws {
        let deadline = Deadline()
        while try !metricsText().contains("\n\(sample) \(value)\n") {
            try #require(!deadline.hasPassed, "\(sample) does not become \(value)")
        }
    }
}
