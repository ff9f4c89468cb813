/// How often values were within ranges that are log-linear: 64 for each power of two, so that a quantile is at most 1.6
/// % above the value that it stands for.
///
/// Noting a value is a count of leading zeros, a shift and an increment. It has room up to the greatest value: times
/// in nanoseconds take 4 KiB up to 16 µs and 13 KiB up to a second.
package struct LogLinearHistogram: Sendable, Equatable {
    private static let subBits = 6
    /// How many ranges all values of 64 bits have.
    package static let rangeCount = (64 - subBits + 1) << subBits

    /// By the number of the range; the last one is not 0.
    package private(set) var counts: [UInt64] = []
    package private(set) var total: UInt64 = 0

    package init() {}

    /// Notes a value so many times.
    package mutating func add(_ value: UInt64, times: UInt64 = 1) {
        add(times, toRange: Self.range(of: value))
    }

    /// Adds to the number of values in a range, which is below ``rangeCount``.
    package mutating func add(_ number: UInt64, toRange range: Int) {
        guard number > 0 else { return }
        if range >= counts.count { counts += repeatElement(0, count: range + 1 - counts.count) }
        counts[range] &+= number
        total &+= number
    }

    /// Adds what another one has noted.
    package mutating func add(_ other: LogLinearHistogram) {
        for (range, count) in other.counts.enumerated() { add(count, toRange: range) }
    }

    /// What has been added since an earlier state of the same histogram.
    package func since(_ earlier: LogLinearHistogram) -> LogLinearHistogram {
        var change = LogLinearHistogram()
        for (range, count) in counts.enumerated() {
            let before = range < earlier.counts.count ? earlier.counts[range] : 0
            if count > before { change.add(count - before, toRange: range) }
        }
        return change
    }

    /// The greatest value of the range in which the value is that `fraction` of all values do not exceed; nil without
    /// any.
    package func quantile(_ fraction: Double) -> UInt64? {
        guard total > 0 else { return nil }
        let rank = max(1, min(Double(total), (Double(total) * fraction).rounded(.up)))
        var seen: UInt64 = 0
        for (range, count) in counts.enumerated() where count > 0 {
            seen &+= count
            if Double(seen) >= rank { return Self.greatestValue(ofRange: range) }
        }
        return Self.greatestValue(ofRange: counts.count - 1)
    }

    /// How many values are in ranges that begin at or below a bound: those up to it, and of those above it the ones in
    /// the same range.
    package func count(upTo bound: UInt64) -> UInt64 {
        counts.prefix(Self.range(of: bound) + 1).reduce(0, &+)
    }

    /// Values under 64 have a range each; for larger ones the six bits after the leading one select it.
    package static func range(of value: UInt64) -> Int {
        let magnitude = 63 - (value | 1).leadingZeroBitCount
        guard magnitude >= subBits else { return Int(value) }
        let shift = magnitude - subBits
        return (shift << subBits) + Int(value >> UInt64(shift))
    }

    private static func greatestValue(ofRange range: Int) -> UInt64 {
        guard range >= 1 << subBits else { return UInt64(range) }
        let shift = (range >> subBits) - 1
        let mantissa = UInt64(range - (shift << subBits))
        // The last range ends at 2^64 - 1.
        return (mantissa + 1) << UInt64(shift) &- 1
    }
}
