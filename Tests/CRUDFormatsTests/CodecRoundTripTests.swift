import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

/// An item comes back from a property list as it was, but for the order of members and the spelling of fractions.
@Suite struct CodecRoundTripTests {
    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func corpusComesBackOrIsRefused(format: CollectionRule.Format) throws {
        var kept = 0
        for text in JSONCorpus.valid {
            if let refusal = Codec(format).refusal(of: text) {
                #expect(refusal.code == .unsupported, "\(text.prefix(60))")
                continue
            }
            kept += 1
            let back = try JSON(parsing: Codec(format).decode(Codec(format).encode(text)))
            let expected = try JSON(parsing: asPropertyListsSpell(JSON(parsing: text)))
            #expect(back.means(expected), "\(text.prefix(60)) came back as \(back.text.prefix(60))")
        }
        #expect(kept > 80)
    }

    @Test(
        arguments: [CollectionRule.Format.xml, .plist],
        [
            #""""#, #"" ""#, #""\n""#, #"" a ""#, #""\t\n a \n\t""#, #""]]>""#, #""<a>&amp;</a>""#, #""&#65;""#,
            #""<![CDATA[x]]>""#,
            #""<!-- -->""#, #""'\"""#, #""\u0085\u00a0\u2003""#, #"{"":""}"#, #"{" ":" "}"#,
            #"{" a ":1,"a":2,"\ta":3}"#,
            #"{"e\u0301":1,"\u00e9":2}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":{"x":1},"\u0061":{"y":2}}"#,
            #"{"&<>":"&<>"}"#,
            "[]", "{}", "[[],{},[{}]]", "true", "false", "1", "-1.5", #"[true,false,true,1,1.0,"1"]"#,
            #"["é","e\u0301","😀"]"#,
            #"{"z":1,"a":2,"m":{"z":1,"a":2}}"#, #"["\ud83d\ude00\ud83d\ude00"]"#,
            #"[255,256,65535,65536,4294967295,4294967296]"#,
            #"[-1,-128,-129,-65536]"#,
        ])
    func comesBack(format: CollectionRule.Format, item: String) throws {
        let back = try JSON(parsing: Codec(format).decode(Codec(format).encode(item)))
        #expect(try back.means(JSON(parsing: item)), "\(back.text)")
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func isAppendedToWhatIsThere(format: CollectionRule.Format) throws {
        let item = Array("[1]".utf8)
        var stored = Array("before".utf8)
        try Codec(format).encode(item: item.span, into: &stored)
        #expect(stored.starts(with: Array("before".utf8)))
        let encoded = Array(stored.dropFirst(6))
        var back = Array("behind".utf8)
        try Codec(format).decode(stored: encoded.span, into: &back, maximumBytes: 100)
        #expect(back == Array("behind[1]".utf8))
    }

    /// Long enough for every width of sizes, references and offsets.
    @Test(arguments: [CollectionRule.Format.xml, .plist], [14, 15, 255, 256, 300, 65535, 65536, 70000])
    func lengthsComeBack(format: CollectionRule.Format, count: Int) throws {
        let codec = Codec(format)
        let elements = "[" + (0..<count).map(String.init).joined(separator: ",") + "]"
        #expect(try codec.decode(codec.encode(elements)) == elements)
        let members = "{" + (0..<count).map { "\"k\($0)\":\"v\($0)\"" }.joined(separator: ",") + "}"
        #expect(try codec.decode(codec.encode(members)) == members)
        let ascii = "\"" + String(repeating: "a", count: count) + "\""
        #expect(try codec.decode(codec.encode(ascii)) == ascii)
        let unicode = "\"" + String(repeating: "é", count: count) + "\""
        #expect(try codec.decode(codec.encode(unicode)) == unicode)
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func nestsAsDeepAsItemsMay(format: CollectionRule.Format) throws {
        let codec = Codec(format)
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let inside = open == "[" ? "" : "1"
            let item = String(repeating: open, count: 1000) + inside + String(repeating: close, count: 1000)
            #expect(try codec.decode(codec.encode(item)) == item)
            let deeper = try codec.encode(open + item + close)
            #expect(codec.fault(in: deeper)?.code == .corrupt)
        }
    }

    /// What is set aside for stored items must be enough for any.
    @Test(
        arguments: [CollectionRule.Format.xml, .plist],
        [
            "1", "[]", #""""#, "{}", "[" + String(repeating: "1,", count: 20000) + "1]",
            "[" + String(repeating: "[],", count: 70000) + "1]", "[" + String(repeating: "{},", count: 70000) + "1]",
            String(repeating: "[", count: 900) + String(repeating: "]", count: 900),
            String(repeating: "{\"\":", count: 900) + "1" + String(repeating: "}", count: 900),
            String(repeating: "[", count: 20) + String(repeating: "[],", count: 70000) + "1"
                + String(repeating: "]", count: 20),
            "[" + (0..<70000).map { "\"é\($0)\"" }.joined(separator: ",") + "]",
            "[" + (1000..<70000).map { "\($0)e9" }.joined(separator: ",") + "]",
            "\"" + String(repeating: "&", count: 10000) + "\"", "\"" + String(repeating: "é", count: 10000) + "\"",
            "\"é" + String(repeating: "a", count: 10000) + "\"",
        ])
    func takesNoMoreRoomThanSaid(format: CollectionRule.Format, item: String) throws {
        let stored = try Codec(format).encode(item)
        #expect(stored.count <= Codec(format).maximumStoredBytes(ofItem: item.utf8.count))
    }

    @Test(arguments: [CollectionRule.Format.json, .xml, .plist])
    func whatIsTooLongIsNotDecoded(format: CollectionRule.Format) throws {
        let codec = Codec(format)
        let item = "[" + (0..<1000).map { "\"element \($0)\"" }.joined(separator: ",") + "]"
        let stored = try codec.encode(item)
        #expect(try codec.decode(stored, maximumBytes: item.utf8.count) == item)
        let error = codec.fault(in: stored, maximumBytes: item.utf8.count / 2)
        #expect(error?.code == .limitExceeded)
        #expect(error?.details.limit == "frame_bytes")
    }
}
