import CRUDFormats
import CRUDModel
import CRUDTestSupport
import Testing

/// What a property list cannot hold is refused, with its path; what it can hold is not.
@Suite struct CodecRefusalTests {
    private static let propertyLists = [CollectionRule.Format.xml, .plist]

    @Test(arguments: [
        "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
    ])
    func integersOf64BitsAreKept(number: String) throws {
        for format in Self.propertyLists { #expect(try Codec(format).decode(Codec(format).encode(number)) == number) }
    }

    @Test(arguments: [
        ("-0", "-0.0"), ("0.0", "0.0"), ("-0.0", "-0.0"), ("0e0", "0.0"), ("0E+400", "0.0"), ("-0e5", "-0.0"),
        ("0.1", "0.1"), ("100.0", "100.0"), ("1e2", "100.0"), ("1E+2", "100.0"), ("1.0e2", "100.0"), ("10e1", "100.0"),
        ("0.1e3", "100.0"), ("12.5e-1", "1.25"), ("1e22", "1e+22"), ("1e+0022", "1e+22"), ("1e-7", "1e-07"),
        ("0.0000001", "1e-07"), ("5e-324", "5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("17976931348623157e292", "1.7976931348623157e+308"), ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("123456789012345680000.0", "1.2345678901234568e+20"), ("9007199254740992.0", "9007199254740992.0"),
        ("0.3", "0.3"), ("-273.15", "-273.15"), ("3.141592653589793", "3.141592653589793"), ("1e23", "1e+23"),
        ("18446744073709551616.0", nil), ("1.8446744073709552e19", "1.8446744073709552e+19"),
    ])
    func fractionsWithTheShortestDigitsAreKept(number: String, spelling: String?) throws {
        for format in Self.propertyLists {
            guard let spelling else {
                #expect(Codec(format).refusal(of: number)?.code == .unsupported)
                continue
            }
            #expect(try Codec(format).decode(Codec(format).encode(number)) == spelling)
        }
    }

    @Test(arguments: [
        "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890",
        String(repeating: "9", count: 5000), "0.10", "1.50", "100.00", "0.00", "-0.00", "0.00e7", "1.10e5",
        "0.1000000000000000055", "0.1000000000000000055511151231257827", "1e400", "-1e400", "1e-400", "4.9e-324",
        "3.14159265358979323846", "9007199254740993.0", "9007199254740993e0", "1e99999999999999999999999",
        "1e-99999999999999999999999", "0.1234567890123456789", "2.5e-324", "1.7976931348623159e308",
        "0." + String(repeating: "0", count: 5000) + "1", String(repeating: "9", count: 5000) + ".5",
    ])
    func numbersWhoseDigitsWouldChangeAreRefused(number: String) {
        for format in Self.propertyLists {
            let error = Codec(format).refusal(of: "{\"a\":[1,\(number)]}")
            #expect(error?.code == .unsupported, "\(format) \(number)")
            #expect(error?.details.path == "a[1]")
        }
    }

    @Test(arguments: [
        ("null", ""), ("[null]", "[0]"), (#"{"a":null}"#, "a"), (#"{"a":{"b":[1,[2,{"c":null}]]}}"#, "a.b[1][1].c"),
        (#"[[],{},null]"#, "[2]"), (#"{"a":{},"b":[],"c":null}"#, "c"), (#"{"":null}"#, ""), (#"{"":{"":null}}"#, "."),
        (#"{"a.b":{"c\\d":{"e[0]":[null]}}}"#, #"a\.b.c\\d.e\[0][0]"#), (#"{"\u00e9":{"😀":null}}"#, "é.😀"),
        (#"[{"a":null}]"#, "[0].a"), (#"{"\"":null}"#, "\""), (" { \"a\" : [ true , null ] } ", "a[1]"),
        (#"{"a":[1e400,null]}"#, "a[0]"),
        (#"{"a":1,"b":{"c":99999999999999999999}}"#, "b.c"),
    ])
    func theErrorNamesThePath(item: String, path: String) {
        for format in Self.propertyLists {
            let error = Codec(format).refusal(of: item)
            #expect(error?.code == .unsupported)
            #expect(error?.details.path == path)
        }
    }

    @Test func xmlRefusesTheCharactersThatItCannotCarry() throws {
        let forbidden = (0..<0x20).filter { ![0x09, 0x0A, 0x0D].contains($0) } + [0xFFFE, 0xFFFF]
        for code in forbidden {
            let hexadecimal = String(code, radix: 16)
            let escape = "\\u" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal
            let value = Codec(.xml).refusal(of: #"{"a":["x","x\#(escape)y"]}"#)
            #expect(value?.code == .unsupported, "\(escape)")
            #expect(value?.details.path == "a[1]")
            let name = Codec(.xml).refusal(of: #"{"a":{"\#(escape)":1}}"#)
            #expect(name?.code == .unsupported, "\(escape)")
            #expect(Codec(.plist).refusal(of: #"{"a":{"\#(escape)":"\#(escape)"}}"#) == nil)
        }
        #expect(Codec(.xml).refusal(of: "\"\u{FFFE}\"")?.code == .unsupported)
        #expect(Codec(.xml).refusal(of: "\"\u{FFFF}\"")?.code == .unsupported)
    }

    @Test(arguments: [
        "\\t", "\\n", " ", "\u{7F}", "\u{80}\u{85}\u{9F}", "\u{2028}", "\u{FEFF}", "\u{FFFD}", "\\ufdd0",
        "\\ud83f\\udffe",
        "\u{10FFFF}", "\u{EFFF}\u{F8FF}", "\\u0009\\u000a", "\\r", "a\\r\\nb\\n\\rc",
    ])
    func xmlCarriesEveryOtherCharacter(text: String) throws {
        let item = "{\"\(text)\":\"\(text)\"}"
        let back = try Codec(.xml).decode(Codec(.xml).encode(item))
        #expect(try JSON(parsing: back).means(JSON(parsing: item)))
    }

    @Test func jsonRefusesNothing() throws {
        for item in JSONCorpus.valid { #expect(try Codec(.json).decode(Codec(.json).encode(item)) == item) }
    }
}
