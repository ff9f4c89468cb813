/// A kind of number in the file: a whole number with a unit.
struct Quantity {
    /// What a diagnostic says was expected.
    let expectation: String
    /// The units that may follow a number, each with its factor; the smallest first.
    let units: [(suffix: String, factor: Int)]
    /// How 0 is written.
    let zero: String

    static let count = Quantity(expectation: "a whole number", units: [("", 1)], zero: "0")

    /// In bytes.
    static let size = Quantity(
        expectation: "a size (a whole number with B, KiB, MiB or GiB)",
        units: [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)], zero: "0B")

    /// In microseconds.
    static let duration = Quantity(
        expectation: "a duration (a whole number with us, ms, s, m, h or d)",
        units: [
            ("us", 1), ("ms", 1000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000), ("d", 86_400_000_000),
        ], zero: "0s")

    /// The value of a text; nil if the text is not of this kind. A number that overflows becomes the largest integer.
    ///
    /// Leading zeros are rejected: versions of YAML disagree on whether they mean octal.
    func value(_ text: [UInt8]) -> Int? {
        let digits = text.prefix { isDigit($0) }
        guard let first = digits.first, first != UInt8(ascii: "0") || digits.count == 1,
            let unit = units.first(where: { text.dropFirst(digits.count).elementsEqual($0.suffix.utf8) })
        else { return nil }
        guard let number = Int(String(decoding: digits, as: UTF8.self)) else { return .max }
        let (value, isOverflow) = number.multipliedReportingOverflow(by: unit.factor)
        return isOverflow ? .max : value
    }

    /// A value as it would be written in the file, with the largest unit that leaves no fraction.
    func text(_ value: Int) -> String {
        if value == 0 { return zero }
        guard let unit = units.last(where: { value.isMultiple(of: $0.factor) }) else { return String(value) }
        return "\(value / unit.factor)\(unit.suffix)"
    }
}

func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
}
