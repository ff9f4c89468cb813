import CRUDJSON
import Foundation
import Testing

import struct CRUDTestSupport.SeededGenerator

/// The scanner accepts JSON text of RFC 8259 and nothing else, and returns where values are.
@Suite struct JSONScannerTests {
    /// Scans a text that must be one value; nil if it is not.
    private func scan(_ text: [UInt8]) -> JSONSlice? {
        var scanner = JSONScanner()
        guard let value = try? scanner.value(text.span), scanner.isAtEnd(text.span) else { return nil }
        return value
    }

    @Test(arguments: [
        "0", "-0", "10", "-1", "1.5", "0.10", "1e400", "1E+2", "1e-2", "123456789012345678901234567890", "-0.0e-0",
        "true", "false", "null", "\"\"", "\"a\"", "\"é😀\"", #""\"\\\/\b\f\n\r\t""#, #""\u0000\u001f\uFFFF""#,
        #""\ud83d\ude00""#, "[]", "[ ]", "{}", "{ }", "[1,2]", "[[],{}]", #"{"a":{"b":[null]}}"#, #"{"a":1,"a":2}"#,
        " \t\r\n1 \t\r\n", "\"\u{7F}\"", "\"\u{2028}\"",
    ])
    func acceptsJSON(text: String) throws {
        let value = try #require(scan(Array(text.utf8)))
        #expect(
            String(decoding: Array(text.utf8)[value.range], as: UTF8.self)
                == text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test(arguments: [
        "", " ", "01", "-", "-01", "+1", "1.", ".5", "1e", "1e+", "1.e1", "0x1", "1_0", "NaN", "Infinity", "-Infinity",
        "tru", "True", "nul", "\"", "\"a", "\"\\\"", #""\a""#, #""\u12""#, #""\u12g4""#, #""\ud800""#, #""\udc00""#,
        #""\ud800\u0041""#, #""\ud800\ud800""#, "\"\n\"", "\"\t\"", "\"\0\"", "[", "]", "[1", "[1,", "[1,]", "[,1]",
        "[1 2]",
        "[1}", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{,}", "{a:1}", "{1:2}", "{\"a\" 1}",
        "{\"a\":1]",
        "'a'", "1 2", "[] []", "// x\n1", "/**/1", "1//", "\u{FEFF}1", "1\0", "\u{A0}1", "1\u{0B}",
    ])
    func rejectsInvalidJSON(text: String) {
        #expect(scan(Array(text.utf8)) == nil)
    }

    /// Table 3-7 of the Unicode standard, from both sides of each bound.
    @Test(
        arguments: [
            ([0xC2, 0x80], true), ([0xDF, 0xBF], true), ([0xE0, 0xA0, 0x80], true), ([0xED, 0x9F, 0xBF], true),
            ([0xEE, 0x80, 0x80], true), ([0xF0, 0x90, 0x80, 0x80], true), ([0xF4, 0x8F, 0xBF, 0xBF], true),
            ([0x80], false), ([0xBF], false), ([0xC0, 0x80], false), ([0xC1, 0xBF], false), ([0xC2], false),
            ([0xC2, 0x41], false), ([0xE0, 0x9F, 0xBF], false), ([0xE1, 0x80], false), ([0xED, 0xA0, 0x80], false),
            ([0xEF, 0xBF], false), ([0xF0, 0x8F, 0xBF, 0xBF], false), ([0xF0, 0x90, 0x80], false),
            ([0xF4, 0x90, 0x80, 0x80], false), ([0xF5, 0x80, 0x80, 0x80], false), ([0xFF], false), ([0xFE], false),
        ] as [([UInt8], Bool)])
    func knowsWellFormedUTF8(bytes: [UInt8], isWellFormed: Bool) {
        #expect((scan([0x22] + bytes + [0x22]) != nil) == isWellFormed)
    }

    /// Strings are scanned eight bytes at a time: a byte that ends the fast path may be anywhere in a word.
    @Test(arguments: 0..<40)
    func findsASpecialByteAtEveryOffset(offset: Int) throws {
        let plain = [UInt8](repeating: UInt8(ascii: "x"), count: offset)
        let tail = [UInt8](repeating: UInt8(ascii: "y"), count: 20)
        for control in 0..<UInt8(0x20) { #expect(scan([0x22] + plain + [control] + tail + [0x22]) == nil) }
        #expect(scan([0x22] + plain + [0x80] + tail + [0x22]) == nil)
        let quoted = try #require(scan([0x22] + plain + [0x22]))
        #expect(quoted.content.count == offset && !quoted.hasEscapes)
        let escaped = try #require(scan([0x22] + plain + Array(#"\n"#.utf8) + tail + [0x22]))
        #expect(escaped.hasEscapes)
    }

    @Test(arguments: [("1", 0), ("[]", 1), ("[[],[]]", 2), (#"{"a":[{}]}"#, 3)])
    func returnsTheDepthOfAValue(text: String, depth: Int) throws {
        #expect(try #require(scan(Array(text.utf8))).depth == depth)
    }

    @Test func doesNotRecurse() throws {
        let depth = 1_000_000
        let text =
            [UInt8](repeating: UInt8(ascii: "["), count: depth) + [UInt8](repeating: UInt8(ascii: "]"), count: depth)
        #expect(try #require(scan(text)).depth == depth)
        #expect(scan(Array(text.dropLast())) == nil)
        let mixed = Array(String(repeating: #"{"a":["#, count: 100_000).utf8)
        #expect(scan(mixed + Array(String(repeating: "]}", count: 100_000).utf8)) != nil)
        #expect(scan(mixed + Array(String(repeating: "}]", count: 100_000).utf8)) == nil)
    }

    /// Random edits of a valid text: the scanner agrees with Foundation's parser.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func agreesWithFoundation(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let original = Array(#"{"a":[1,-2.5e+3,true,null,"x\u00e9\n"],"b":{"c":"é"},"d":[]}"#.utf8)
        let alphabet = Array("{}[]:,\"\\ue+-.0123456789tfn \n".utf8)
        for round in 0..<3000 {
            var text = original
            for _ in 0...Int.random(in: 0...2, using: &random) {
                let index = Int.random(in: text.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text[index] = alphabet[Int.random(in: alphabet.indices, using: &random)]
                case 1: text.remove(at: index)
                default: text.insert(alphabet[Int.random(in: alphabet.indices, using: &random)], at: index)
                }
            }
            guard let foundation = FoundationJSON.accepts(text) else { continue }
            let comment = "seed \(seed), round \(round): \(String(decoding: text, as: UTF8.self))"
            #expect((scan(text) != nil) == foundation, "\(comment)")
        }
    }
}
