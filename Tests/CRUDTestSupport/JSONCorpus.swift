/// Unusual JSON texts: valid and invalid ones by RFC 8259.
package enum JSONCorpus {
    /// JSON texts.
    package static let valid: [String] = [
        // Literals and empty things.
        "null", "true", "false", #""""#, "[]", "{}", "[[]]", "[{}]", #"{"":{}}"#, #"{"a":[]}"#, "[null,1,\"1\",{}]",
        // Numbers.
        "0", "-0", "1", "-1", "10", "123", "0.0", "-0.0", "0.1", "1.10", "0e0", "0E0", "0e+1", "0e-1", "1e0", "1E22",
        "1e+22", "1e-22", "1e00", "1e01", "1.5e300", "-1.5E-300", "1e400", "-1e400", "1e-400", "1e99999",
        "123456789012345678901234567890", "-123456789012345678901234567890", "0.00000000000000000000000000000001",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "4.9e-324", "1.7976931348623157e308",
        "-0e0", "[-0]", "[1e1,1E1,1e+1,1e-1]",
        // Escapes.
        #""\"""#, #""\\""#, #""\/""#, #""\b\f\n\r\t""#, #""\u0000""#, #""\u001f""#, #""\u007f""#, #""\u00e9""#,
        #""\u00E9""#, #""\u2028\u2029""#, #""\uFEFF""#, #""\uFFFE""#, #""\uffff""#, #""\uFDD0""#, #""\ud83d\ude00""#,
        #""\uD800\uDC00""#, #""\uDBFF\uDFFF""#, #""\ud7ff\ue000""#, #""\\u0000""#, #""\\\"""#, #""a\u0041b""#,
        #""\u005c""#, #""\u0022""#, #""\uD834\uDD1E\uD834\uDD1E""#, #"["\u0000","\\"]"#, #"{"\u0000":0}"#,
        // Raw characters.
        "\"\u{7F}\"", "\"\u{80}\u{9F}\"", "\"\u{A0}\"", "\"\u{2028}\u{2029}\"", "\"\u{FEFF}\"", "\"\u{FFFD}\"",
        "\"\u{FFFE}\u{FFFF}\"", "\"\u{D7FF}\u{E000}\"", "\"\u{10000}\u{10FFFF}\"", "\"😀👩‍👩‍👧‍👦\"", "\"e\u{301}\u{E9}\"",
        "\"/\"",
        "\"'\"", "\"// no comment\"", "\"/* neither */\"", "\"{\\\"a\\\":1}\"", "\"[1,2\"", "{\"😀\":\"é\"}",
        "\"\u{7FF}\u{800}\"",
        // White space.
        " 1", "1 ", "\t1\n", "\r\n1\r\n", "[ ]", "{ }", "[ 1 ,\t2\n]", "{ \"a\" :\r1 }", "[\n\n\n]", " \"  \" ",
        // Names.
        #"{"a":1,"b":2}"#, #"{"a":1,"A":2}"#, #"{"a":{"a":{"a":1}}}"#, #"{"a b":1}"#, #"{"0":1}"#, #"{"a.b":1}"#,
        #"{"true":true}"#, #"{"__proto__":1}"#, #"{"é":1}"#, "{\"e\u{301}\":1,\"\u{E9}\":2}", #"{"a":1,"a":2}"#,
        #"{"a":1,"\u0061":1}"#, #"{"":1,"":2}"#,
        // Depth and length.
        String(repeating: "[", count: 128) + String(repeating: "]", count: 128),
        String(repeating: #"{"a":"#, count: 128) + "1" + String(repeating: "}", count: 128),
        String(repeating: "[", count: 127) + "{}" + String(repeating: "]", count: 127),
        "[" + String(repeating: "1,", count: 20000) + "1]", "\"" + String(repeating: "\\\\", count: 5000) + "\"",
        String(repeating: "9", count: 5000), "0." + String(repeating: "0", count: 5000) + "1",
        "{\"" + String(repeating: "k", count: 5000) + "\":1}",
    ]

    /// Invalid JSON, by itself and as a member's value.
    package static let invalid: [[UInt8]] = invalidTexts.map { Array($0.utf8) } + invalidBytes

    private static let invalidTexts: [String] = [
        // Empty and truncated texts.
        "", " ", "\n", "[", "{", "\"", "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[[]", "{\"a\":{}",
        "\"abc", "\"abc\\", "\"\\u", "\"\\u00", "\"\\\"", "nul", "tru", "fals", "n", "t", "f", "-", "+",
        // Additional text.
        "]", "}", "[]]", "{}}", "[1]]", "1 2", "1,", ",1", "\"a\" \"b\"", "\"a\"b", "nulll", "truefalse", "null null",
        "{} {}", "[] []", "1]", "\"a\":1", "[1}", "{\"a\":1]",
        // Commas and colons.
        "[,]", "[1,]", "[,1]", "[1,,2]", "[1 2]", "[1:2]", "{,}", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1,,\"b\":2}",
        "{\"a\"}", "{\"a\":}", "{:1}", "{\"a\" 1}", "{\"a\",1}", "{\"a\"::1}", "{\"a\":1 \"b\":2}", "{\"a\":1:2}", ":",
        ",",
        // Names that are not strings.
        "{a:1}", "{'a':1}", "{1:1}", "{null:1}", "{[]:1}", "{{}:1}", "{\"a\":1,b:2}", "{true:1}",
        // Numbers.
        "01", "-01", "00", "1.", ".1", "-.1", "-.", "1.e1", "1e", "1e+", "1e-", "1e1.5", "1E", "+1", "--1", "-+1",
        "1+1", "0x10",
        "0b1", "0o7", "1_000", "1,000.0", "1f", "1L", "Infinity", "-Infinity", "NaN", "-NaN", "nan", "inf", "-", "1 .5",
        "1. 5", "- 1", "１", "٣", "1e１", "0e", "0.e1", "1ee1", "1e1e1", "-a", "0a", "1-1",
        // Literals.
        "True", "FALSE", "Null", "NULL", "undefined", "None", "yes", "nil", "TRUE",
        // Strings.
        "'a'", "`a`", "a", "\"\\a\"", "\"\\x41\"", "\"\\0\"", "\"\\'\"", "\"\\v\"", "\"\\e\"", "\"\\ \"", "\"\\😀\"",
        "\"\\U0041\"", "\"\\u004\"", "\"\\u004g\"", "\"\\u 041\"", "\"\\u+041\"", "\"\\u{41}\"", "\"\\u-041\"",
        "\"\\u00４1\"",
        "\"\u{0}\"", "\"\u{1}\"", "\"\n\"", "\"\r\"", "\"\t\"", "\"\u{1F}\"", "{\"a\nb\":1}", "{\"\t\":1}", "\"\\\n\"",
        // Lone surrogates in escapes.
        "\"\\ud800\"", "\"\\udbff\"", "\"\\udc00\"", "\"\\udfff\"", "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"",
        "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\\u0041\"", "\"\\ud83d\\ude0\"", "\"\\ud83d\\\\ude00\"",
        "\"\\ud83d😀\"", "{\"\\ud800\":1}", "\"\\uD83D\\uD83D\\uDE00\"", "\"\\ude00\\ud83d\"",
        // Comments, and characters that are not white space.
        "/**/1", "1/**/", "//\n1", "1//", "#\n1", "[1/**/,2]", "<!-- -->1", "\u{FEFF}1", "\u{FEFF}{}", "[\u{FEFF}]",
        "\u{A0}1",
        "1\u{A0}", "[\u{2028}1]", "\u{B}1", "\u{C}1", "[1,\u{C}2]", "\u{85}1", "\u{200B}1", "\u{2060}1", "\u{0}",
        "1\u{0}", "[\u{0}]",
        "\u{0}{}", "\u{1B}1", "\u{8}1", "{\"a\"\u{0}:1}", "\\u0031", "\\n1", "1\\n",
        // Other languages.
        "(1)", "<a/>", "a: 1", "- 1", "[1;2]", "{\"a\"=1}", "{\"a\"=>1}", "@", "$", "😀", "é", "*", "&", "~", "[...]",
        "[1..2]",
        "1//comment\n", "{\"a\":1}//", "{\"a\":1}#", "[a]", "[1,a]", "[\"a\",\n", "{\"a\":\"b\"\"c\"}", "\"a\"+\"b\"",
        // Deep and long texts without an end.
        String(repeating: "[", count: 100) + "1", String(repeating: "{\"a\":", count: 60) + "1",
        "[" + String(repeating: "1,", count: 10000), "\"" + String(repeating: "a", count: 70000),
    ]

    private static let quote: [UInt8] = [0x22]

    /// Invalid UTF-8: in strings, in names, and outside of them.
    private static let invalidBytes: [[UInt8]] =
        invalidSequences.map { quote + $0 + quote } + invalidSequences.map { quote + Array("a".utf8) + $0 + quote }
        + invalidSequences.map { Array("{\"".utf8) + $0 + Array("\":1}".utf8) } + invalidSequences
        + [
            // UTF-16 and UTF-32 of valid texts, with and without a byte order mark.
            [0xFF, 0xFE, 0x31, 0x00], [0xFE, 0xFF, 0x00, 0x31], [0x31, 0x00], [0x00, 0x31], [0x00, 0x00, 0x00, 0x31],
            // A sequence that the closing quotation mark cuts short.
            [0x22, 0xE2, 0x82, 0x22], [0x22, 0xF0, 0x9F, 0x98, 0x22], [0x22, 0xC3, 0x22],
            // A valid string with a bad byte behind a long run of good ones.
            [0x22] + [UInt8](repeating: 0x61, count: 1023) + [0xFF, 0x22],
            [0x22] + [UInt8](repeating: 0x61, count: 31) + [0xC0, 0xAF, 0x22],
        ]

    private static let invalidSequences: [[UInt8]] = [
        // Continuation bytes alone, and bytes that never occur.
        [0x80], [0xBF], [0xFE], [0xFF], [0xFE, 0xFE, 0xFF, 0xFF], [0xF8, 0x88, 0x80, 0x80, 0x80],
        [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80],
        // Truncated.
        [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0xE2], [0xF0], [0xF0, 0x9F],
        // Overlong.
        [0xC0, 0x80], [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0xAF], [0xE0, 0x9F, 0xBF], [0xF0, 0x80, 0x80, 0xAF],
        [0xF0, 0x8F, 0xBF, 0xBF],
        // Surrogates (CESU-8).
        [0xED, 0xA0, 0x80], [0xED, 0xAF, 0xBF], [0xED, 0xB0, 0x80], [0xED, 0xBF, 0xBF],
        [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80],
        // Latin-1 and a continuation too many.
        [0xE9], [0xC3, 0xA9, 0xA9], [0xE2, 0x28, 0xA1], [0xC3, 0x28],
    ]
}
