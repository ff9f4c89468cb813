import CRUDJSON
import Testing

/// The position and reason of syntax errors.
@Suite struct JSONSyntaxErrorTests {
    /// The error of scanning a text that must be one value.
    private func error(_ text: [UInt8]) -> JSONSyntaxError? {
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            try scanner.document(text.span)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            ("", .unexpectedEnd, 0), ("  \n", .unexpectedEnd, 3), ("x", .unexpectedByte, 0), (" }", .unexpectedByte, 1),
            // Numbers.
            ("-", .unexpectedEnd, 1), ("-x", .unexpectedByte, 1), ("--1", .unexpectedByte, 1),
            ("+1", .unexpectedByte, 0),
            ("01", .trailingBytes, 1), ("-00", .trailingBytes, 2), ("1.", .unexpectedEnd, 2),
            ("1.e2", .unexpectedByte, 2),
            (".1", .unexpectedByte, 0), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3),
            ("1e+-2", .unexpectedByte, 3), ("1e5.5", .trailingBytes, 3), ("0x1F", .trailingBytes, 1),
            ("1_000", .trailingBytes, 1), ("1 000", .trailingBytes, 2), ("[1,-]", .unexpectedByte, 4),
            ("[0123]", .unexpectedByte, 2), ("[1.]", .unexpectedByte, 3), ("[1e]", .unexpectedByte, 3),
            // Literals.
            ("tru", .unexpectedEnd, 3), ("trUe", .unexpectedByte, 2), ("nulll", .trailingBytes, 4),
            ("falsE", .unexpectedByte, 4), ("NULL", .unexpectedByte, 0), ("[nul]", .unexpectedByte, 4),
            // Arrays and objects.
            ("[", .unexpectedEnd, 1), ("[ ", .unexpectedEnd, 2), ("[1", .unexpectedEnd, 2), ("[1,", .unexpectedEnd, 3),
            ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1), ("[1;2]", .unexpectedByte, 2),
            ("[1 2]", .unexpectedByte, 3), ("[}", .unexpectedByte, 1), ("[1}", .unexpectedByte, 2),
            ("[]]", .trailingBytes, 2), ("{", .unexpectedEnd, 1), ("{\"a\"", .unexpectedEnd, 4),
            ("{\"a\":", .unexpectedEnd, 5), ("{\"a\":1", .unexpectedEnd, 6), ("{\"a\":1,", .unexpectedEnd, 7),
            ("{\"a\":1,}", .unexpectedByte, 7), ("{,", .unexpectedByte, 1), ("{1:1}", .unexpectedByte, 1),
            ("{a:1}", .unexpectedByte, 1), ("{\"a\" 1}", .unexpectedByte, 5), ("{\"a\":1]", .unexpectedByte, 6),
            ("{\"a\":1 \"b\":2}", .unexpectedByte, 7), ("{\"a\":1;}", .unexpectedByte, 6), ("{]", .unexpectedByte, 1),
            ("{\"a\"::1}", .unexpectedByte, 5), ("[{\"a\":[1,{]}]", .unexpectedByte, 10), ("{}{}", .trailingBytes, 2),
            // Strings.
            ("\"", .unexpectedEnd, 1), ("\"abc", .unexpectedEnd, 4), ("\"\n\"", .controlCharacter, 1),
            ("\"a\u{1F}\"", .controlCharacter, 2), ("\"0123456789\0\"", .controlCharacter, 11),
            ("\"\\\"", .unexpectedEnd, 3), ("\"\\", .unexpectedEnd, 1), ("\"a\\x\"", .unexpectedByte, 2),
            ("\"\\U0041\"", .unexpectedByte, 1), ("\"\\u004\"", .unexpectedByte, 1), ("\"\\u004", .unexpectedEnd, 1),
            ("\"\\u00 0\"", .unexpectedByte, 1),
            ("\"\\ud800\"----", .loneSurrogate, 1), ("\"\\udbff\\n----\"", .loneSurrogate, 1),
            ("\"\\udc00\"", .loneSurrogate, 1), ("\"ab\\udfff\\ud800\"", .loneSurrogate, 3),
            ("\"\\ud800\\ud800\"", .loneSurrogate, 1), ("\"\\ud83d\\u0041\"", .loneSurrogate, 1),
            ("[\"\\ud800x\",0,0]", .loneSurrogate, 2),
            // Comments, and what other parsers treat as white space.
            ("\u{FEFF}1", .unexpectedByte, 0), ("\u{A0}1", .unexpectedByte, 0), ("\u{C}1", .unexpectedByte, 0),
            ("1\u{B}", .trailingBytes, 1), ("1\0", .trailingBytes, 1), ("1 // one", .trailingBytes, 2),
            ("[1,/**/2]", .unexpectedByte, 3), ("[1\u{2028}]", .unexpectedByte, 2),
        ] as [(String, JSONSyntaxError.Reason, Int)])
    func findsReasonAndOffset(text: String, reason: JSONSyntaxError.Reason, offset: Int) {
        #expect(error(Array(text.utf8)) == JSONSyntaxError(reason: reason, offset: offset))
    }

    @Test func everyTruncationIsNoticed() {
        let text = Array(#" {"a\n":[-12.5e+3,"\ud83d\ude00é😀",{"b":true}],"c":{"":null},"d":[[],{}]}"#.utf8)
        #expect(error(text) == nil)
        for count in text.indices { #expect(error(Array(text[..<count])) != nil, "the first \(count) bytes") }
        // A scalar that is cut short is invalid UTF-8.
        #expect(error([0x22, 0xF0, 0x9F, 0x98]) == JSONSyntaxError(reason: .invalidUTF8, offset: 1))
    }

    /// One byte among plain ones: a byte that ends the eight-byte steps through a string may be anywhere in a step,
    /// after any number of steps, with any number of bytes behind it.
    @Test func everyByteAtEveryOffsetOfAString() {
        for offset in 0...40 {
            for left in [0, 1, 7, 8, 9] {
                for byte in UInt8.min...UInt8.max {
                    let plain = [UInt8](repeating: UInt8(ascii: "x"), count: offset)
                    let rest = [UInt8](repeating: UInt8(ascii: "x"), count: left) + [0x22]
                    let found = error([0x22] + plain + [byte] + rest)
                    let expected: JSONSyntaxError.Reason? =
                        switch byte {
                        case 0..<0x20: .controlCharacter
                        case 0x22: .trailingBytes
                        case 0x5C: left > 0 ? .unexpectedByte : .unexpectedEnd
                        case 0x80...: .invalidUTF8
                        default: nil
                        }
                    guard found?.reason != expected else { continue }
                    Issue.record("byte \(byte) at \(offset), \(left) left: \(String(describing: found))")
                }
            }
        }
    }
}
