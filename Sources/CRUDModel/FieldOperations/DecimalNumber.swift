import CRUDJSON

/// A decimal number, exactly: what field operations calculate with.
///
/// It is bounded by the digits that its text without exponent has, so that no exponent makes it long.
struct DecimalNumber {
    /// 0 is not negative.
    private var isNegative: Bool
    /// The most significant one first, no zero at either end: 0 has none.
    private var digits: [UInt8]
    /// The power of ten that the last digit counts.
    private var exponent: Int

    /// How many digits the text may have.
    static let maximumDigits = 1000

    /// - Parameter slice: a number that a ``JSONScanner`` has found in the text.
    /// - Returns: nil for one that has too many digits.
    init?(_ slice: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) {
        isNegative = text[slice.start] == UInt8(ascii: "-")
        digits = []
        exponent = 0
        var isFraction = false
        /// How many zeros have come since the last digit; they count only if another one follows.
        var zeros = 0
        var index = isNegative ? slice.start + 1 : slice.start
        work.begin(at: index)
        while index < slice.end, text[index] | 0x20 != UInt8(ascii: "e"), work.passes(index) {
            let byte = text[index]
            index += 1
            guard byte != UInt8(ascii: ".") else {
                isFraction = true
                continue
            }
            if isFraction { exponent -= 1 }
            guard byte != UInt8(ascii: "0") else {
                if !digits.isEmpty { zeros += 1 }
                continue
            }
            guard digits.count + zeros < Self.maximumDigits else { return nil }
            digits += repeatElement(0, count: zeros)
            digits.append(byte - UInt8(ascii: "0"))
            zeros = 0
        }
        exponent += zeros + ExactNumber.writtenExponent(text, from: index + 1, to: slice.end, &work)
        normalize()
        if digitCount > Self.maximumDigits { return nil }
    }

    private init(isNegative: Bool, digits: [UInt8], exponent: Int) {
        self.isNegative = isNegative
        self.digits = digits
        self.exponent = exponent
        normalize()
    }

    /// Removes zeros from both ends.
    private mutating func normalize() {
        while digits.last == 0 {
            digits.removeLast()
            exponent += 1
        }
        let zeros = digits.prefix { $0 == 0 }.count
        digits.removeFirst(zeros)
        guard digits.isEmpty else { return }
        isNegative = false
        exponent = 0
    }

    /// How many digits the text has.
    private var digitCount: Int { max(1, digits.count + exponent) + max(0, -exponent) }

    // MARK: Arithmetic

    /// The sum; nil if it has too many digits.
    func adding(_ other: DecimalNumber) -> DecimalNumber? {
        let sum = sum(with: other)
        return sum.digitCount > Self.maximumDigits ? nil : sum
    }

    func isLess(than other: DecimalNumber) -> Bool {
        var negated = other
        negated.isNegative = !other.digits.isEmpty && !other.isNegative
        return sum(with: negated).isNegative
    }

    private func sum(with other: DecimalNumber) -> DecimalNumber {
        let exponent = min(exponent, other.exponent)
        let count = max(integerDigits, other.integerDigits) - exponent
        let (left, right) = (aligned(count, exponent), other.aligned(count, exponent))
        if isNegative == other.isNegative {
            return DecimalNumber(isNegative: isNegative, digits: Self.sum(left, right), exponent: exponent)
        }
        if left.lexicographicallyPrecedes(right) {
            return DecimalNumber(
                isNegative: other.isNegative, digits: Self.difference(right, left), exponent: exponent)
        }
        return DecimalNumber(isNegative: isNegative, digits: Self.difference(left, right), exponent: exponent)
    }

    /// How many digits stand before the point, zeros included; below 0: so many zeros follow the point.
    private var integerDigits: Int { digits.count + exponent }

    /// So many digits, of which the last one counts a power of ten.
    private func aligned(_ count: Int, _ exponent: Int) -> [UInt8] {
        let end = digits + [UInt8](repeating: 0, count: digits.isEmpty ? 0 : self.exponent - exponent)
        return [UInt8](repeating: 0, count: count - end.count) + end
    }

    /// - Parameter right: as many digits as the other.
    private static func sum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var sum = [UInt8](repeating: 0, count: left.count + 1)
        var carry: UInt8 = 0
        for index in left.indices.reversed() {
            let digit = left[index] + right[index] + carry
            carry = digit >= 10 ? 1 : 0
            sum[index + 1] = digit - 10 * carry
        }
        sum[0] = carry
        return sum
    }

    /// - Parameter right: as many digits as the other, and no greater number.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var difference = left
        var borrow: UInt8 = 0
        for index in left.indices.reversed() {
            let subtrahend = right[index] + borrow
            borrow = left[index] < subtrahend ? 1 : 0
            difference[index] = left[index] + 10 * borrow - subtrahend
        }
        return difference
    }

    // MARK: Text

    /// The number without exponent and without zeros that say nothing, in ASCII.
    var text: [UInt8] {
        let zero = UInt8(ascii: "0")
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        let integer = digits.prefix(max(0, integerDigits))
        text += integer.isEmpty ? [zero] : integer.map { $0 + zero }
        text += repeatElement(zero, count: max(0, exponent))
        guard exponent < 0 else { return text }
        text.append(UInt8(ascii: "."))
        text += repeatElement(zero, count: max(0, -integerDigits))
        text += digits.dropFirst(integer.count).map { $0 + zero }
        return text
    }
}
