package import CRUDHistogram

/// How often a value was within ranges, the sum of all values, and the bounds by which metrics show it.
package struct Histogram: Sendable {
    /// The bounds of the metrics; rising.
    package let bounds: [UInt64]
    package private(set) var values = LogLinearHistogram()
    package private(set) var sum: UInt64 = 0

    private init(bounds: [UInt64]) {
        self.bounds = bounds
    }

    /// Of times in nanoseconds; metrics show them from 10 µs to 10 s by about three bounds for each power of ten.
    package static func times() -> Histogram { Histogram(bounds: timeBounds) }

    /// Of sizes; metrics show them by the powers of two up to 1024.
    package static func sizes() -> Histogram { Histogram(bounds: sizeBounds) }

    private static let timeBounds: [UInt64] =
        [10, 25, 50, 100, 250, 500].map { $0 * 1000 } + [1, 2, 5, 10, 25, 50, 100, 250, 500].map { $0 * 1_000_000 }
        + [1, 2, 5, 10].map { $0 * 1_000_000_000 }
    private static let sizeBounds: [UInt64] = (0...10).map { 1 << $0 }

    /// Notes a value so many times.
    package mutating func add(_ value: UInt64, times: UInt64 = 1) {
        values.add(value, times: times)
        sum &+= value &* times
    }

    /// Notes a time.
    package mutating func add(_ time: Duration, times: UInt64 = 1) {
        let (seconds, attoseconds) = time.components
        add(UInt64(clamping: seconds * 1_000_000_000 + attoseconds / 1_000_000_000), times: times)
    }

    /// Adds what another one with the same bounds has noted.
    package mutating func add(_ other: Histogram) {
        values.add(other.values)
        sum &+= other.sum
    }

    /// How many values there were.
    package var count: UInt64 { values.total }

    /// How many values were at most as great as each bound; those that are up to 1.6 % greater may be among them.
    package var countsUpToBounds: [UInt64] { bounds.map { values.count(upTo: $0) } }
}
