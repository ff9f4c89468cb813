import CRUDModel
import Glibc

/// Numbers as people read them, a few characters long. What is not a number of anything is a dash.
enum Amount {
    /// At most seven characters: `0.4`, `3`, `12`, `12.3k`, `1.23M`.
    static func count(_ number: Double) -> String {
        switch number {
        case _ where !(number < largest): "-"
        case ..<0.05: "0"
        case ..<9.95 where number != number.rounded(): decimal(number, 1)
        case ..<9999.5: String(Int(number.rounded()))
        case ..<999_950: decimal(number / 1e3, 1) + "k"
        case ..<999_950_000: decimal(number / 1e6, 2) + "M"
        default: decimal(number / 1e9, 2) + "G"
        }
    }

    /// What is not below is not a number of anything.
    private static let largest = 1e12

    static func percent(_ part: Double, rounded isRounded: Bool = false) -> String {
        guard part < largest else { return "-" }
        return "\(Int(saturating: (max(0, part) * 100).rounded(isRounded ? .toNearestOrAwayFromZero : .down))) %"
    }

    /// Such as `12 µs`, `3.4 ms` or `1.2 s`.
    static func time(_ seconds: Double?) -> String {
        guard let seconds, seconds < 100_000 else { return "-" }
        return DurationText.text(seconds: seconds)
    }

    static func bytes(_ number: Double) -> String {
        switch number {
        case _ where !(number / 1024 < largest): "-"
        case ..<1024: "\(Int(max(0, number))) B"
        case ..<(1024 * 1024): "\(Int(number / 1024)) KiB"
        case ..<(1024 * 1024 * 1024): decimal(number / 1024 / 1024, 1) + " MiB"
        case ..<(1024 * 1024 * 1024 * 1024): decimal(number / 1024 / 1024 / 1024, 1) + " GiB"
        default: decimal(number / 1024 / 1024 / 1024 / 1024, 1) + " TiB"
        }
    }

    /// Such as `3 d 4 h`, `4 h 5 min` or `42 s`.
    static func duration(_ seconds: Double) -> String {
        let seconds = Int(saturating: max(0, seconds))
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60)
        if days > 0 { return "\(days) d \(hours) h" }
        if hours > 0 { return "\(hours) h \(minutes) min" }
        return minutes > 0 ? "\(minutes) min \(seconds % 60) s" : "\(seconds) s"
    }

    private static func decimal(_ number: Double, _ digits: Int) -> String {
        let factor = digits == 1 ? 10.0 : 100.0
        let scaled = Int(saturating: (number * factor).rounded())
        let fraction = String(scaled % Int(factor))
        return "\(scaled / Int(factor))." + String(repeating: "0", count: digits - fraction.count) + fraction
    }

    /// An instant in milliseconds since 1970-01-01 UTC, in the time zone of the process; nil if it is not one.
    static func instant(_ milliseconds: Int) -> String? {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        // The calls read and write one value of their types, and at most the size of the buffer.
        guard unsafe localtime_r(&seconds, &parts) != nil else { return nil }
        var text = [CChar](repeating: 0, count: 64)
        guard unsafe strftime(&text, text.count, "%Y-%m-%d %H:%M:%S", &parts) > 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
