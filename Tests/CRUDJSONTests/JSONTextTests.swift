import CRUDJSON
import Testing

/// Decoding and encoding of strings.
@Suite struct JSONTextTests {
    private func string(_ text: [UInt8]) throws -> JSONSlice {
        var scanner = JSONScanner()
        return try scanner.value(text.span)
    }

    @Test(arguments: [
        (#""""#, ""), (#""a""#, "a"), (#""\"\\\/""#, "\"\\/"), (#""\b\f\n\r\t""#, "\u{8}\u{C}\n\r\t"),
        (#""\u0041\u00e9\u20AC""#, "Aé€"), (#""\ud83d\uDE00!""#, "😀!"), (#""é😀""#, "é😀"), (#""\u0000""#, "\0"),
    ])
    func decodes(text: String, value: String) throws {
        let bytes = Array(text.utf8)
        #expect(try string(bytes).decodedString(bytes.span) == Array(value.utf8))
    }

    @Test(arguments: [
        (#""method""#, true), (#""m\u0065thod""#, true), (#""metho""#, false), (#""methodX""#, false),
        (#""\u006d""#, false),
    ])
    func comparesByValue(text: String, isEqual: Bool) throws {
        let bytes = Array(text.utf8)
        #expect(try string(bytes).equals("method", bytes.span) == isEqual)
    }

    @Test func everyByteSurvivesWritingAndReading() throws {
        let value = (0..<0x80).map { UInt8($0) } + Array("é€😀\u{2028}".utf8)
        var text: [UInt8] = []
        text.appendJSONString(value)
        #expect(try string(text).decodedString(text.span) == value)
    }

    @Test func theWriterInsertsCommas() {
        var writer = JSONWriter()
        writer.object { object in
            object.member("a", 1)
            object.key("b")
            object.array { array in
                array.string("x")
                array.object { _ in }
                array.null()
                array.raw("1.50".utf8)
            }
            object.member("c", true)
            object.member("d", strings: ["y", "z"])
        }
        #expect(
            String(decoding: writer.bytes, as: UTF8.self) == #"{"a":1,"b":["x",{},null,1.50],"c":true,"d":["y","z"]}"#)
    }

    /// Every code unit as an escape, surrogates in pairs.
    @Test func everyEscapeOfAScalarIsDecoded() throws {
        for value in stride(from: UInt32(0), through: 0x10FFFF, by: 1) where value < 0x3000 || value % 251 < 3 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = Array("\"\(String(scalar).utf16.map { "\\u" + hexadecimal($0) }.joined())\"".utf8)
            let slice = try string(text)
            guard slice.decodedString(text.span) != Array(String(scalar).utf8) || !slice.hasEscapes else { continue }
            Issue.record("U+\(String(value, radix: 16))")
        }
    }

    private func hexadecimal(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }

    @Test(arguments: [
        (#""\u00e9""#, true), (#""\u00E9""#, true), ("\"é\"", true), (#""e\u0301""#, false), (#""\u00e8""#, false),
        (#""é\u0000""#, false), (#""""#, false),
    ])
    func comparesByCodePoint(text: String, isEqual: Bool) throws {
        let bytes = Array(text.utf8)
        #expect(try string(bytes).equals("é", bytes.span) == isEqual)
    }

    @Test func onlyRequiredEscapesAreWritten() {
        func written(_ byte: UInt8) -> String {
            var text: [UInt8] = []
            text.appendJSONString([byte])
            return String(decoding: text, as: UTF8.self)
        }
        let short: [UInt8: String] = [
            0x08: #"\b"#, 0x09: #"\t"#, 0x0A: #"\n"#, 0x0C: #"\f"#, 0x0D: #"\r"#, 0x22: #"\""#, 0x5C: #"\\"#,
        ]
        for byte in UInt8.min..<0x80 {
            let plain = String(Unicode.Scalar(byte))
            let content = short[byte] ?? (byte < 0x20 ? "\\u" + hexadecimal(UInt16(byte)) : plain)
            #expect(written(byte) == "\"\(content)\"")
        }
    }

    @Test func theWriterNests() {
        var writer = JSONWriter(into: Array("x=".utf8))
        writer.array { array in
            array.array { _ in }
            array.object { $0.member("", "") }
            array.integer(-1)
            array.integer(UInt64.max)
            array.bool(false)
            array.string(utf8: [0x22, 0xC3, 0xA9])
            array.object { object in
                object.key("a")
                object.object { $0.member("b", strings: [String]()) }
                object.member("c", false)
                object.key("d")
                object.string("é")
            }
        }
        #expect(
            String(decoding: writer.bytes, as: UTF8.self)
                == #"x=[[],{"":""},-1,18446744073709551615,false,"\"é",{"a":{"b":[]},"c":false,"d":"é"}]"#)
    }

    @Test(arguments: [("1", true), ("-12", true), ("1.0", false), ("1e2", false), ("1E2", false), ("\"1\"", false)])
    func knowsIntegers(text: String, isInteger: Bool) throws {
        let bytes = Array(text.utf8)
        #expect(try string(bytes).isInteger(bytes.span) == isInteger)
    }
}
