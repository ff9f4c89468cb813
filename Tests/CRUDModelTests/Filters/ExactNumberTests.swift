import CRUDJSON
import CRUDModel
import Testing

import struct CRUDTestSupport.SeededGenerator

/// The values of numbers.
@Suite struct ExactNumberTests {
    private func number(_ text: String) throws -> ExactNumber {
        ExactNumber(try #require(JSONNumber(text: text)))
    }

    @Test(
        arguments: [
            ("0", .integer(0)), ("-0", .integer(0)), ("-0.0", .integer(0)), ("0e5", .integer(0)), ("1", .integer(1)),
            ("1.0", .integer(1)),
            ("1e2", .integer(100)), ("100e-2", .integer(1)), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)),
            ("-9223372036854775807", .integer(-.max)), ("9223372036854775808", .binary64(0x1p63)),
            ("-9223372036854775809", .integer(.min)),
            ("-9223372036854777000", .binary64(-9_223_372_036_854_777_856)),
            ("9223372036854775807.0", .binary64(0x1p63)),
            ("18446744073709551616", .binary64(0x1p64)), ("1e400", .binary64(.infinity)),
            ("-1e400", .binary64(-.infinity)),
            ("1e99999999999999999999", .binary64(.infinity)), ("1e-99999999999999999999", .integer(0)),
            ("0.1", .binary64(0.1)), ("-2.5", .binary64(-2.5)),
            ("5e-324", .binary64(.leastNonzeroMagnitude)),
            ("1.7976931348623157e308", .binary64(.greatestFiniteMagnitude)),
            ("1e22", .binary64(1e22)), ("1e23", .binary64(1e23)),
            ("9007199254740993.0", .integer(9_007_199_254_740_992)), ("0.30000000000000004", .binary64(0.1 + 0.2)),
            ("123456789012345678901234567890e-20", .binary64(1234567890.12345678901234567890)), ("1e+2", .integer(100)),
            ("1E-2", .binary64(0.01)),
        ] as [(String, ExactNumber)])
    func values(text: String, expected: ExactNumber) throws {
        #expect(try number(text) == expected)
    }

    /// Both paths return the nearest binary64, as Swift's own parser does.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func roundsCorrectly(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5000 {
            let digits = String(
                UInt64.random(in: 0...UInt64.max, using: &random) >> UInt64.random(in: 0...63, using: &random))
            var text = Bool.random(using: &random) ? "-" + digits : digits
            if Bool.random(using: &random) {
                text +=
                    ".\(UInt32.random(in: 0...UInt32.max, using: &random) >> UInt32.random(in: 0...31, using: &random))"
            }
            if Bool.random(using: &random) { text += "e\(Int.random(in: -330...330, using: &random))" }
            let expected = try Int64(text).map { .integer($0) } ?? ExactNumber(#require(Double(text)))
            #expect(try number(text) == expected, "\(text)")
        }
    }

    /// Digits that only together decide between two neighbours, and more of them than any binary64 has.
    @Test func manyDigits() throws {
        let half = "9007199254740993"
        for count in [1, 900, 5000] {
            let zeros = String(repeating: "0", count: count)
            #expect(try number("\(half).\(zeros)") == number("9007199254740992.0"))
            #expect(try number("\(half).\(zeros)1") == number("9007199254740994.0"))
            #expect(try number("-\(half).\(zeros)1") == number("-9007199254740994.0"))
            #expect(try number("\(half)\(zeros).1e-\(count)") == number("9007199254740994.0"))
            #expect(try number("0.\(zeros)5e\(count + 1)") == number("5"))
            #expect(try number("1\(zeros)e-\(count)") == number("1"))
            #expect(try number("1e\(zeros)2") == number("100"))
            #expect(try number("1e999\(zeros)") == .binary64(.infinity))
            #expect(try number("-1e-999\(zeros)") == number("0"))
            #expect(try number("0.\(zeros)e9\(zeros)") == number("0"))
        }
    }

    @Test(arguments: [
        "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", " 1", "1 ", "NaN", "inf", "1_000", "--1", "1.2.3", "é",
    ])
    func rejectsOtherTexts(text: String) {
        #expect(JSONNumber(text: text) == nil)
    }

    @Test func numbersFromSwift() {
        #expect(JSONNumber(UInt64.max).text == "18446744073709551615")
        #expect(
            JSONNumber(0.1)?.text == "0.1" && JSONNumber(1e300)?.text == "1e+300" && JSONNumber(-0.0)?.text == "-0.0")
        #expect(JSONNumber(Double.nan) == nil && JSONNumber(-Double.infinity) == nil)
    }
}
