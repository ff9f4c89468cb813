/// How often a value was within each of fixed ranges, and the sum of all values.
package struct Histogram: Sendable {
    /// The greatest value of each range but the last, which has none; rising.
    package let bounds: [UInt64]
    /// How many values were within each range.
    package private(set) var counts: [UInt64]
    package private(set) var sum: UInt64 = 0

    private init(bounds: [UInt64]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Of times in nanoseconds, from 10 µs to 10 s: about three ranges for each power of ten.
    package static func times() -> Histogram { Histogram(bounds: timeBounds) }

    /// Of sizes, the powers of two up to 1024.
    package static func sizes() -> Histogram { Histogram(bounds: sizeBounds) }

    private static let timeBounds: [UInt64] =
        [10, 25, 50, 100, 250, 500].map { $0 * 1000 } + [1, 2, 5, 10, 25, 50, 100, 250, 500].map { $0 * 1_000_000 }
        + [1, 2, 5, 10].map { $0 * 1_000_000_000 }
    private static let sizeBounds: [UInt64] = (0...10).map { 1 << $0 }

    /// Notes a value so many times.
    package mutating func add(_ value: UInt64, times: UInt64 = 1) {
        var index = 0
        while index < bounds.count, value > bounds[index] { index += 1 }
        counts[index] &+= times
        sum &+= value &* times
    }

    /// Notes a time.
    package mutating func add(_ time: Duration, times: UInt64 = 1) {
        let (seconds, attoseconds) = time.components
        add(UInt64(clamping: seconds * 1_000_000_000 + attoseconds / 1_000_000_000), times: times)
    }

    /// Adds what another one with the same ranges has noted.
    package mutating func add(_ other: Histogram) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum &+= other.sum
    }

    /// How many values there were.
    package var count: UInt64 { counts.reduce(0, &+) }
}
