/// Latencies in log-linear buckets, 64 for each power of two, so that the error of a quantile is at most 1.6 %.
///
/// Recording is a count of leading zeros, a shift and an increment.
struct Histogram {
    private static let subBits = 6
    private var counts = [UInt64](repeating: 0, count: (64 - subBits + 1) << subBits)
    private(set) var total: UInt64 = 0

    mutating func record(nanoseconds: UInt64) {
        counts[Self.bucket(nanoseconds)] += 1
        total += 1
    }

    /// The upper end, in microseconds, of the bucket in which the `fraction`-th of all latencies lies; 0 without any.
    func quantile(_ fraction: Double) -> Double {
        let rank = UInt64((Double(total) * fraction).rounded(.up))
        var seen: UInt64 = 0
        for (bucket, count) in counts.enumerated() where count > 0 {
            seen += count
            if seen >= rank { return Double(Self.upperEnd(bucket)) / 1000 }
        }
        return 0
    }

    /// Values under 64 have a bucket each; for larger ones the six bits after the leading one select it.
    private static func bucket(_ value: UInt64) -> Int {
        let magnitude = 63 - (value | 1).leadingZeroBitCount
        guard magnitude >= subBits else { return Int(value) }
        let shift = magnitude - subBits
        return (shift << subBits) + Int(value >> UInt64(shift))
    }

    private static func upperEnd(_ bucket: Int) -> UInt64 {
        guard bucket >= 1 << subBits else { return UInt64(bucket) }
        let shift = (bucket >> subBits) - 1
        let mantissa = UInt64(bucket - (shift << subBits))
        return (mantissa + 1) << UInt64(shift) - 1
    }
}
