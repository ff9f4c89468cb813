#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Dates as RFC 3339 text (https://www.rfc-editor.org/rfc/rfc3339), written in UTC and read with any offset.
///
/// Foundation's own ISO 8601 styles either drop or require fractions of a second. Here a date is always written with
/// nine digits of its fraction, so that the order of the texts, by which the daemon compares and sorts, is the order of
/// time. Reading it results in an equal date: a Date is more precise only within some months of 2001, its reference
/// date.
enum RFC3339 {
    /// The text of `date`; nil if its year does not have four digits.
    static func text(of date: Date) -> String? {
        let interval = date.timeIntervalSinceReferenceDate
        guard earliest <= interval, interval < latest else { return nil }
        var seconds = Int(interval.rounded(.down))
        var nanoseconds = Int(((interval - interval.rounded(.down)) * 1e9).rounded())
        if nanoseconds == 1_000_000_000 { (seconds, nanoseconds) = (seconds + 1, 0) }
        let (days, secondOfDay) = seconds.flooredQuotientAndRemainder(dividingBy: 86_400)
        let (year, month, day) = civilDate(daysSince2001: days)
        guard year <= 9999 else { return nil }
        var text = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
        text += "\(padded(secondOfDay / 3600, 2)):\(padded(secondOfDay / 60 % 60, 2)):\(padded(secondOfDay % 60, 2))"
        return text + ".\(padded(nanoseconds, 9))Z"
    }

    /// The date of a text; nil if that is not an RFC 3339 date and time. A leap second becomes the second after it.
    static func date(from text: String) -> Date? {
        var reader = Reader(rest: text.utf8[...])
        guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let day = reader.number(2), reader.take("T", "t", " "), let hour = reader.number(2), reader.take(":"),
            let minute = reader.number(2), reader.take(":"), let second = reader.number(2),
            let fraction = reader.fraction(), let offset = reader.offset(), reader.rest.isEmpty,
            (1...12).contains(month), (1...daysIn(month, of: year)).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = daysSince2001(year: year, month: month, day: day)
        return Date(
            timeIntervalSinceReferenceDate: Double(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
                + fraction)
    }

    // MARK: The calendar

    /// 0000-01-01 and 10000-01-01, in seconds since 2001.
    private static let earliest = Double(daysSince2001(year: 0, month: 1, day: 1) * 86_400)
    private static let latest = Double(daysSince2001(year: 10_000, month: 1, day: 1) * 86_400)

    /// Days from 1 March of the year 0 to 1 January 2001.
    private static let epoch = 730_791

    // Both directions count years from March, so that the leap day is a year's last, in eras of 400 years (146097
    // days); see https://howardhinnant.github.io/date_algorithms.html.

    private static func daysSince2001(year: Int, month: Int, day: Int) -> Int {
        let (era, yearOfEra) = (month > 2 ? year : year - 1).flooredQuotientAndRemainder(dividingBy: 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - epoch
    }

    private static func civilDate(daysSince2001 days: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = (days + epoch).flooredQuotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    private static func daysIn(_ month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    // MARK: The text

    /// Reads the parts of a date's text.
    private struct Reader {
        var rest: Substring.UTF8View

        mutating func take(_ any: Unicode.Scalar...) -> Bool {
            guard let first = rest.first, any.contains(Unicode.Scalar(first)) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func number(_ digits: Int) -> Int? {
            guard rest.count >= digits else { return nil }
            var number = 0
            for byte in rest.prefix(digits) {
                guard byte &- UInt8(ascii: "0") < 10 else { return nil }
                number = number * 10 + Int(byte - UInt8(ascii: "0"))
            }
            rest = rest.dropFirst(digits)
            return number
        }

        /// The fraction of a second, 0 if there is none.
        mutating func fraction() -> Double? {
            guard take(".") else { return 0 }
            let digits = rest.prefix { $0 &- UInt8(ascii: "0") < 10 }
            rest = rest.dropFirst(digits.count)
            return digits.isEmpty ? nil : Double("0." + String(decoding: digits, as: UTF8.self))
        }

        /// The offset from UTC in seconds.
        mutating func offset() -> Int? {
            if take("Z", "z") { return 0 }
            let isWest = rest.first == UInt8(ascii: "-")
            guard take("+", "-"), let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60
            else { return nil }
            return (hours * 3600 + minutes * 60) * (isWest ? -1 : 1)
        }
    }
}

extension Int {
    /// The quotient rounded towards minus infinity, and the remainder, which is never negative.
    fileprivate func flooredQuotientAndRemainder(dividingBy divisor: Int) -> (Int, Int) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
