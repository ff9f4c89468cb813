import CRUDStorage

/// Writes metrics as text in the OpenMetrics format
/// (https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md), version 1.0.
///
/// Only the types that Prometheus' older text format has too are used, so that programs that read just that one, such
/// as node_exporter's textfile collector, understand it as well.
struct OpenMetricsWriter {
    enum Kind: String {
        case counter, gauge, histogram
    }

    private var text: [UInt8] = []
    private var family = ""
    private var kind = Kind.gauge

    /// A label; its value may be any text.
    struct Label {
        let name: StaticString
        let value: [UInt8]

        init(_ name: StaticString, _ value: String) {
            self.init(name, Array(value.utf8))
        }

        init(_ name: StaticString, _ value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    /// Begins a family of metrics; its samples follow.
    ///
    /// - Parameters:
    ///   - name: ends in the unit, if there is one; without `_total`.
    ///   - help: one sentence.
    mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        family = name
        self.kind = kind
        append("# TYPE \(name) \(kind.rawValue)\n")
        for unit in ["seconds", "bytes"] where name.hasSuffix("_\(unit)") { append("# UNIT \(name) \(unit)\n") }
        append("# HELP \(name) \(help)\n")
    }

    /// A family that is one value without labels; parameters as of ``begin(_:_:_:)``.
    mutating func single(
        _ name: String, _ kind: Kind, _ value: some Numeric & CustomStringConvertible, _ help: String
    ) {
        begin(name, kind, help)
        sample(value)
    }

    /// The value of a counter or a gauge.
    mutating func sample(_ value: some Numeric & CustomStringConvertible, _ labels: [Label] = []) {
        sample(kind == .counter ? "_total" : "", labels, value.description)
    }

    /// - Parameter divisor: how many of the histogram's units make one of the metric's.
    mutating func sample(_ histogram: Histogram, _ labels: [Label], per divisor: Double = 1) {
        for (bound, count) in zip(histogram.bounds, histogram.countsUpToBounds) {
            sample("_bucket", labels + [Label("le", "\(Double(bound) / divisor)")], String(count))
        }
        sample("_bucket", labels + [Label("le", "+Inf")], String(histogram.count))
        sample("_count", labels, String(histogram.count))
        sample("_sum", labels, "\(Double(histogram.sum) / divisor)")
    }

    /// The whole text.
    func finish() -> [UInt8] { text + Array("# EOF\n".utf8) }

    private mutating func sample(_ suffix: String, _ labels: [Label], _ value: String) {
        append(family)
        append(suffix)
        for (index, label) in labels.enumerated() {
            append(index == 0 ? "{" : ",")
            append("\(label.name)=\"")
            for byte in label.value {
                switch byte {
                case UInt8(ascii: "\\"), UInt8(ascii: "\""): text += [UInt8(ascii: "\\"), byte]
                case UInt8(ascii: "\n"): append("\\n")
                default: text.append(byte)
                }
            }
            append("\"")
        }
        append(labels.isEmpty ? " \(value)\n" : "} \(value)\n")
    }

    private mutating func append(_ string: String) { text.append(contentsOf: string.utf8) }
}
