import CRUDJSON
import CRUDModel

/// A JSON number as a property list represents it.
enum PropertyListNumber: Equatable {
    case integer(Int128)
    case real(Double)

    /// A number without fraction and exponent is an integer of 64 bits, signed or unsigned, which every tool reads; −0
    /// is not. Any other number is the binary64 whose shortest text has the same digits, however either writes the
    /// exponent: `1e2` is 100.0, but `0.10` and `3.14159265358979323846` cannot be represented.
    ///
    /// - Throws: `unsupported` for a number that is neither.
    init(json text: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        if let value = Self.shortInteger(text) {
            self = .integer(value)
            return
        }
        let digits = DecimalDigits(json: text, &work)
        if digits.isInteger, !digits.isNegative || !digits.isZero {
            guard let value = digits.integer else {
                throw CRUDError(.unsupported, "a property list cannot represent an integer of more than 64 bits")
            }
            self = .integer(value)
        } else {
            guard let value = digits.binary64, value.isFinite, DecimalDigits(value) == digits else {
                throw CRUDError(
                    .unsupported, "a property list cannot represent this number without changing its digits")
            }
            self = .real(value)
        }
    }

    /// The value of an integer with at most eighteen digits, which nearly every number is; nil for other numbers, and
    /// for −0.
    private static func shortInteger(_ text: Span<UInt8>) -> Int128? {
        let isNegative = text[0] == UInt8(ascii: "-")
        guard text.count <= 18 else { return nil }
        var value: Int64 = 0
        for index in (isNegative ? 1 : 0)..<text.count {
            let digit = text[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = value * 10 + Int64(digit)
        }
        if isNegative, value == 0 { return nil }
        return Int128(isNegative ? -value : value)
    }
}

/// A decimal number as its digits without zeros around them, and a power of ten.
///
/// Two are equal if they are the same number with the same digits. Zeros that show a number's magnitude (`100`,
/// `0.001`) or mark it as a fraction (`100.0`) are not significant; a further zero at the end of a fraction (`0.10`)
/// is, and makes a number unequal to every shortest text.
private struct DecimalDigits: Equatable {
    /// Without the sign, and without zeros before and behind.
    private var significant: [UInt8] = []
    /// The power of ten that the last significant digit counts; 0 for zero.
    private var exponent = 0
    private var hasIdleZero = false
    private(set) var isNegative = false
    /// Whether it is written without fraction and exponent.
    private(set) var isInteger = true

    var isZero: Bool { significant.isEmpty }

    /// The most digits that tell a binary64 from all others (https://doi.org/10.1145/93542.93557).
    private static let mostDigits = 17

    /// A number with a greater exponent is not a binary64, whatever the exponent.
    private static let greatestExponent = 1 << 40

    static func == (left: DecimalDigits, right: DecimalDigits) -> Bool {
        left.significant == right.significant && left.exponent == right.exponent
            && left.isNegative == right.isNegative && left.hasIdleZero == right.hasIdleZero
    }

    /// The shortest spelling of a number.
    init(_ value: Double) {
        let text = Array(value.description.utf8)
        var work = Work()
        self.init(json: text.span, &work)
    }

    /// - Parameter text: a JSON number.
    init(json text: Span<UInt8>, _ work: inout Work) {
        var index = 0
        var fractionDigits = 0
        var isInFraction = false
        if text[0] == UInt8(ascii: "-") {
            isNegative = true
            index = 1
        }
        work.begin(at: index)
        scan: while index < text.count, work.passes(index) {
            switch text[index] {
            case UInt8(ascii: "."):
                isInFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                exponent = Self.exponent(text, at: index + 1, &work)
                isInteger = false
                break scan
            case let digit:
                if isInFraction { fractionDigits += 1 }
                if digit != UInt8(ascii: "0") || !significant.isEmpty { significant.append(digit) }
                hasIdleZero = fractionDigits > 1 && digit == UInt8(ascii: "0")
            }
            index += 1
        }
        if isInFraction { isInteger = false }
        exponent -= fractionDigits
        while significant.last == UInt8(ascii: "0") {
            significant.removeLast()
            exponent += 1
        }
        if significant.isEmpty { exponent = 0 }
    }

    private static func exponent(_ text: Span<UInt8>, at start: Int, _ work: inout Work) -> Int {
        var exponent = 0
        var isNegative = false
        for index in start..<text.count {
            guard work.passes(index) else { return 0 }
            switch text[index] {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "+"): continue
            case let digit: exponent = min(exponent * 10 + Int(digit - UInt8(ascii: "0")), greatestExponent)
            }
        }
        return isNegative ? -exponent : exponent
    }

    /// The integer; nil if it does not fit into 64 bits, signed or unsigned.
    var integer: Int128? {
        guard significant.count + exponent <= 20 else { return nil }
        var value: Int128 = 0
        for digit in significant { value = value * 10 + Int128(digit - UInt8(ascii: "0")) }
        for _ in 0..<exponent { value *= 10 }
        if isNegative { value = -value }
        return Int128(Int64.min)...Int128(UInt64.max) ~= value ? value : nil
    }

    /// The nearest binary64; nil where there are too many digits for the shortest spelling of any.
    var binary64: Double? {
        guard significant.count <= Self.mostDigits else { return nil }
        let digits = isZero ? "0" : String(decoding: significant, as: UTF8.self)
        return Double("\(isNegative ? "-" : "")\(digits)e\(exponent)")
    }
}
