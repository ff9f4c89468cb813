import CRUDJSON
import Testing

/// Strings out of their spelling and back into it.
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

    @Test func theWriterPutsCommasWhereTheyBelong() {
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

    @Test(arguments: [("1", true), ("-12", true), ("1.0", false), ("1e2", false), ("1E2", false), ("\"1\"", false)])
    func knowsIntegers(text: String, isInteger: Bool) throws {
        let bytes = Array(text.utf8)
        #expect(try string(bytes).isInteger(bytes.span) == isInteger)
    }
}
