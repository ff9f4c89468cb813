import CRUDHistogram
import CRUDWire

/// The samples of a text of metrics, by the name of their family.
struct MetricsReader {
    struct Sample: Equatable {
        var labels: [String: String] = [:]
        var value = 0.0
    }

    private struct HistogramName: Hashable {
        let name: String
        let labels: [String: String]
    }

    private var samples: [String: [Sample]] = [:]
    private var histograms: [HistogramName: LogLinearHistogram] = [:]

    /// Lines that are no samples are ignored.
    ///
    /// - Parameter histograms: of `daemon.metrics`, for what the text shows by a few bounds.
    init(_ text: some StringProtocol, histograms: [ResultObject] = []) {
        for histogram in histograms {
            let (label, value) = histogram.object("labels").flatMap(Self.label) ?? ("", "")
            let name = HistogramName(name: histogram.string("name") ?? "", labels: [label: value])
            self.histograms[name] = Self.histogram(histogram.elements("counts") ?? [])
        }
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
            guard let (name, sample) = Self.sample(line) else { continue }
            samples[name, default: []].append(sample)
        }
    }

    /// The label of a histogram: it has one.
    private static func label(_ labels: ResultObject) -> (String, String)? {
        if let method = labels.string("method") { return ("method", method) }
        return labels.string("backend").map { ("backend", $0) }
    }

    private static func histogram(_ counts: [ArraySlice<UInt8>]) -> LogLinearHistogram {
        let numbers = counts.map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
        var histogram = LogLinearHistogram()
        for index in stride(from: 0, to: numbers.count - 1, by: 2) {
            let (range, count) = (numbers[index], numbers[index + 1])
            guard 0..<LogLinearHistogram.rangeCount ~= range, count > 0 else { continue }
            histogram.add(UInt64(count), toRange: range)
        }
        return histogram
    }

    /// A histogram of times in nanoseconds; nil where the daemon has sent none.
    func histogram(_ name: String, _ labels: [String: String]) -> LogLinearHistogram? {
        histograms[HistogramName(name: name, labels: labels)]
    }

    /// The samples with a name, in the order of the text.
    subscript(name: String) -> [Sample] { samples[name] ?? [] }

    /// The only sample with a name.
    func value(_ name: String) -> Double? { samples[name]?.first?.value }

    private static func sample(_ line: some Collection<UInt8>) -> (String, Sample)? {
        var rest = Array(line)[...]
        let name = rest.prefix { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: " ") }
        rest = rest.dropFirst(name.count)
        var sample = Sample()
        while rest.first == UInt8(ascii: "{") || rest.first == UInt8(ascii: ",") {
            let key = rest.dropFirst().prefix { $0 != UInt8(ascii: "=") }
            rest = rest.dropFirst(key.count + 3)
            guard let value = quoted(&rest) else { return nil }
            sample.labels[String(decoding: key, as: UTF8.self)] = value
        }
        let number = rest.drop { $0 == UInt8(ascii: "}") || $0 == UInt8(ascii: " ") }
        guard let value = Double(String(decoding: number, as: UTF8.self)) else { return nil }
        sample.value = value
        return (String(decoding: name, as: UTF8.self), sample)
    }

    /// Takes the value of a label, and the quotation mark behind it.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String? {
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst() else { return nil }
                value.append(escaped == UInt8(ascii: "n") ? UInt8(ascii: "\n") : escaped)
            default: value.append(byte)
            }
        }
        return nil
    }
}
