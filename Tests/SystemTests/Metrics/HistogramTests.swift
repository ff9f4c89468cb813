import CRUDTestSupport
import Testing

/// `daemon.metrics` with `histograms`: the ranges behind the bounds of the text.
@Suite struct HistogramTests {
    @Test func haveWhatTheTextHas() throws {
        let daemon = try Daemon(Configuration(loops: 2))
        let connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        for id in 0..<50 { #expect(try connection.read("c", "\(id)").result != nil) }
        let plain = try #require(try connection.call("daemon.metrics").result)
        #expect(plain["histograms"] == nil)
        let result = try #require(try connection.call("daemon.metrics", #"{"histograms":true}"#).result)
        let histograms = try #require(result["histograms"]?.elements)
        let samples = try connection.metrics()
        for (name, label, value, expected) in [
            ("crudd_request_duration_seconds", "method", "record.create", 100),
            ("crudd_request_duration_seconds", "method", "record.read", 50),
        ] {
            let named = histograms.first { $0["name"]?.string == name && $0["labels"]?[label]?.string == value }
            let numbers = (named?["counts"]?.elements ?? []).compactMap { Int($0.text) }
            #expect(numbers.count.isMultiple(of: 2) && !numbers.isEmpty)
            let ranges = stride(from: 0, to: numbers.count, by: 2).map { numbers[$0] }
            let counts = stride(from: 1, to: numbers.count, by: 2).map { numbers[$0] }
            #expect(ranges == ranges.sorted() && Set(ranges).count == ranges.count)
            #expect(counts.reduce(0, +) == expected)
            #expect(samples["\(name)_count{\(label)=\"\(value)\"}"] == Double(expected))
            // What the text shows up to a bound is what ranges that begin there or below have.
            for (bound, nanoseconds) in [("0.0001", 100_000), ("0.001", 1_000_000), ("0.1", 100_000_000)] {
                let least = Self.range(of: nanoseconds)
                let sum = zip(ranges, counts).reduce(0) { $0 + ($1.0 <= least ? $1.1 : 0) }
                #expect(samples["\(name)_bucket{le=\"\(bound)\",\(label)=\"\(value)\"}"] == Double(sum))
            }
        }
        let backends = histograms.compactMap { $0["labels"]?["backend"]?.string }
        #expect(backends.contains("main"))
    }

    /// As the protocol says.
    private static func range(of value: Int) -> Int {
        let shift = max(0, Int.bitWidth - 1 - value.leadingZeroBitCount - 6)
        return shift * 64 + (value >> shift)
    }
}
