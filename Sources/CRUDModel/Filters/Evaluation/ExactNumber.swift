package import CRUDJSON

/// The value of a JSON number in filters and sorts.
///
/// A number without fraction and exponent from −2⁶³ to 2⁶³−1 is exact, any other is its nearest binary64, and both
/// kinds are compared by exact value. A binary64 that is such an integer is stored as one, so that equal numbers are
/// equal cases.
package enum ExactNumber: Hashable, Sendable {
    case integer(Int64)
    /// Never NaN, and never an integer that fits into the other case.
    case binary64(Double)

    /// - Parameter value: anything but NaN.
    package init(_ value: Double) {
        // 2⁶³ is a binary64, 2⁶³−1 is not.
        if value >= -0x1p63, value < 0x1p63, Double(Int64(value)) == value {
            self = .integer(Int64(value))
        } else {
            self = .binary64(value)
        }
    }

    package init(_ number: JSONNumber) {
        let text = Array(number.text.utf8)
        self.init(JSONSlice(start: 0, end: text.count, kind: .number), text.span)
    }

    /// - Parameter slice: a number that a ``JSONScanner`` has found in the text.
    package init(_ slice: JSONSlice, _ text: Span<UInt8>) {
        var work = Work()
        self.init(slice, text, &work)
    }

    /// As ``init(_:_:)``.
    package init(_ slice: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) {
        self = Self.fastPath(slice, text) ?? Self.slowPath(slice, text, &work)
    }

    /// The value of an integer that fits, or of a few digits with a small power of ten, for which one multiplication or
    /// division of exact binary64s rounds correctly (Clinger, "How to Read Floating Point Numbers Accurately", 1990);
    /// nil for other numbers.
    private static func fastPath(_ slice: JSONSlice, _ text: Span<UInt8>) -> ExactNumber? {
        var index = slice.start
        let isNegative = text[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        var digits: UInt64 = 0
        guard append(&digits, text, &index, slice.end) else { return nil }
        if index == slice.end {
            guard digits < 1 << 63 else {
                return isNegative && digits == 1 << 63 ? .integer(.min) : nil
            }
            return .integer(isNegative ? -Int64(digits) : Int64(digits))
        }
        var power = 0
        if text[index] == UInt8(ascii: ".") {
            index += 1
            let start = index
            guard append(&digits, text, &index, slice.end) else { return nil }
            power = start - index
        }
        if index < slice.end {
            index += 1
            let sign = text[index]
            if sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { index += 1 }
            var exponent: UInt64 = 0
            guard append(&exponent, text, &index, slice.end), exponent < 1000 else { return nil }
            power += sign == UInt8(ascii: "-") ? -Int(exponent) : Int(exponent)
        }
        guard digits <= 1 << 53, -22...22 ~= power else { return nil }
        let magnitude = power < 0 ? Double(digits) / powersOfTen[-power] : Double(digits) * powersOfTen[power]
        return ExactNumber(isNegative ? -magnitude : magnitude)
    }

    /// Appends a run of digits to `value`; returns false if they overflow.
    private static func append(_ value: inout UInt64, _ text: Span<UInt8>, _ index: inout Int, _ end: Int) -> Bool {
        while index < end {
            let digit = text[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return true }
            // Nineteen digits always fit.
            guard value < 1_000_000_000_000_000_000 else { return false }
            value = value &* 10 &+ UInt64(digit)
            index += 1
        }
        return true
    }

    private static func slowPath(_ slice: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) -> ExactNumber {
        if slice.count <= longestInteger, slice.isInteger(text),
            let integer = Int64(String(decoding: slice.range.map { text[$0] }, as: UTF8.self))
        {
            return .integer(integer)
        }
        // Swift parses every JSON number, rounds correctly and returns ±infinity outside the range.
        return ExactNumber(Double(shortened(slice, text, &work)) ?? 0)
    }

    /// −2⁶³ has so many characters.
    private static let longestInteger = 20

    /// No binary64, and no number half way between two of them, has more significant digits (767 and 768).
    private static let significantDigits = 800

    /// A number with the same nearest binary64 and a bounded number of digits: of those behind it only matters whether
    /// one is not 0.
    private static func shortened(_ slice: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) -> String {
        var digits: [UInt8] = []
        var hasFurther = false
        var exponent = 0
        var isFraction = false
        var index = slice.start
        work.begin(at: index)
        while index < slice.end, text[index] | 0x20 != UInt8(ascii: "e"), work.passes(index) {
            let byte = text[index]
            index += 1
            if byte == UInt8(ascii: ".") { isFraction = true }
            guard byte &- UInt8(ascii: "0") < 10 else { continue }
            if isFraction { exponent -= 1 }
            if digits.isEmpty, byte == UInt8(ascii: "0") { continue }
            if digits.count < significantDigits {
                digits.append(byte)
            } else {
                if byte != UInt8(ascii: "0") { hasFurther = true }
                exponent += 1
            }
        }
        if hasFurther {
            digits.append(UInt8(ascii: "1"))
            exponent -= 1
        }
        exponent += writtenExponent(text, from: index + 1, to: slice.end, &work)
        let sign = text[slice.start] == UInt8(ascii: "-") ? "-" : ""
        return digits.isEmpty ? "0" : "\(sign)\(String(decoding: digits, as: UTF8.self))e\(exponent)"
    }

    /// The exponent that is written in a range of the text, as far as it matters.
    ///
    /// - Parameters:
    ///   - text: what has the number.
    ///   - start: where the exponent begins.
    ///   - end: where it ends.
    ///   - work: what counts the positions of the number.
    static func writtenExponent(_ text: Span<UInt8>, from start: Int, to end: Int, _ work: inout Work) -> Int {
        var exponent = 0
        var isNegative = false
        var index = start
        while index < end, work.passes(index) {
            if text[index] == UInt8(ascii: "-") { isNegative = true }
            let digit = text[index] &- UInt8(ascii: "0")
            // No item has as many digits that would make up for it.
            if digit < 10 { exponent = min(exponent * 10 + Int(digit), 1 << 40) }
            index += 1
        }
        work.end(at: index)
        return isNegative ? -exponent : exponent
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]
}

extension ExactNumber: Comparable {
    package static func < (left: ExactNumber, right: ExactNumber) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right
        case (.binary64(let left), .binary64(let right)): left < right
        case (.integer(let left), .binary64(let right)): isLess(left, right)
        case (.binary64(let left), .integer(let right)): !isLess(right, left)
        }
    }

    private static func isLess(_ integer: Int64, _ value: Double) -> Bool {
        if value >= 0x1p63 { return true }
        if value < -0x1p63 { return false }
        // The value has a fraction, which the conversion truncates towards 0.
        return value > 0 ? integer <= Int64(value) : integer < Int64(value)
    }
}
