/// Durations as people read them.
package enum DurationText {
    /// Such as `12 µs`, `3.4 ms` or `1.2 s`.
    package static func text(seconds: Double) -> String {
        switch seconds {
        case ..<0.0009995: "\(Int((max(0, seconds) * 1e6).rounded())) µs"
        case ..<0.09995: decimal(seconds * 1e3) + " ms"
        case ..<0.9995: "\(Int((seconds * 1e3).rounded())) ms"
        default: decimal(seconds) + " s"
        }
    }

    private static func decimal(_ number: Double) -> String {
        let tenths = Int((min(number, 1e12) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
