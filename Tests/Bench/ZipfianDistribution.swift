import Glibc

/// Ranks whose frequencies fall as rank^-0.99, as in YCSB's workloads.
///
/// The method is that of Gray, Sundaresan, Englert, Baclawski, Weinberger: Quickly generating billion-record synthetic
/// databases, SIGMOD '94 (https://dl.acm.org/doi/10.1145/191839.191886): the sum of all frequencies is computed once,
/// then each rank takes one power.
struct ZipfianDistribution {
    private static let exponent = 0.99

    private let count: Double
    /// Of the frequencies, that of rank 0 being 1.
    private let sum: Double
    private let eta: Double

    init(count: UInt64) {
        self.count = Double(count)
        sum = (1...count).reduce(0) { $0 + pow(Double($1), -Self.exponent) }
        let sumOfTwo = 1 + pow(0.5, Self.exponent)
        eta = (1 - pow(2 / self.count, 1 - Self.exponent)) / (1 - sumOfTwo / sum)
    }

    /// - Parameter uniform: 64 random bits.
    /// - Returns: 0 ..< count, the most frequent first.
    func rank(_ uniform: UInt64) -> UInt64 {
        let fraction = Double(uniform >> 11) / 0x1p53
        let place = fraction * sum
        if place < 1 { return 0 }
        if place < 1 + pow(0.5, Self.exponent) { return 1 }
        return UInt64(count * pow(eta * fraction - eta + 1, 1 / (1 - Self.exponent)))
    }
}
