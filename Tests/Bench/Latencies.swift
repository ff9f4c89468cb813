import CRUDHistogram

extension LogLinearHistogram {
    /// The latency, in microseconds, that this part of all latencies does not exceed, at most 1.6 % too long; 0 without
    /// any.
    func microseconds(_ fraction: Double) -> Double { Double(quantile(fraction) ?? 0) / 1000 }
}
