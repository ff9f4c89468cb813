import CRUDTestSupport
import Testing

/// An item comes back as it was written, white space aside.
@Suite struct ItemTextTests {
    private static let texts = [
        "0", "-0", "1", "-1", "0.10", "1.0", "1e400", "-1e400", "1E+2", "1e-400", "0e0", "10.50e10",
        "123456789012345678901234567890", "-123456789012345678901234567890.000", "9007199254740993",
        "18446744073709551616", "-9223372036854775809", "0.1000000000000000055511151231257827",
        "null", "true", "false", "\"\"", "[]", "{}", #""text""#, #"[1,"a",null,{"b":[]}]"#,
        #"{"b":1,"a":2,"C":3,"":4}"#, #"{"10":1,"9":2,"1":3}"#, #"{"z":{"y":{"x":1}}}"#,
        #""\u0041""#, #""\/""#, #""/""#, #""\u0000""#, #""\u001f""#, #""\ud83d\ude00""#, "\"😀\"", #""\b\f\n\r\t\"\\""#,
        "\"\u{2028}\u{2029}\u{FEFF}\u{FFFF}\u{7F}\"", "\"e\u{301}\"", "\"\u{E9}\"", #"{"é\"\\\u0000":1}"#,
        #"{"\u00e9":1,"a\/b":[1],"\u0041":{"\u0061":2}}"#, #"{"id":"x","item":1,"revision":"y"}"#,
        #"{"jsonrpc":"1.0","result":{},"error":null}"#,
    ]

    @Test func survivesStorageAndRestart() throws {
        var daemon = try Daemon()
        var connection = try daemon.connect()
        for (number, text) in Self.texts.enumerated() {
            #expect(try connection.create("texts", "\(number)", text).result != nil, "\(text)")
        }
        for restart in [false, true] {
            if restart {
                try daemon.stop()
                daemon = try daemon.restarted()
                connection = try daemon.connect()
            }
            for (number, text) in Self.texts.enumerated() {
                let stored = try connection.item("texts", "\(number)").map(JSON.compact)
                #expect(
                    stored.map { Array($0.utf8) } == Array(text.utf8), "\(text) came back as \(stored ?? "nothing")")
            }
        }
    }

    @Test func mayLoseInsignificantWhiteSpaceOnly() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let text = " {\t\"a b\" : [ 1 ,\r\n 2 ] , \"c\" : \" x  y \" , \"\\\" \" : { } }\n"
        for method in ["record.create", "record.update", "record.upsert"] {
            #expect(try connection.call(method, Connection.params("spaced", "a", item: text)).result != nil)
            #expect(try connection.item("spaced", "a").map(JSON.compact) == JSON.compact(text))
        }
    }

    /// Names are kept as they are written, and found however they are.
    @Test func namesKeepTheirEscapes() throws {
        let daemon = try Daemon(Configuration(collections: #""*": {backend: main, indexes: [é.a]}"#))
        let connection = try daemon.connect()
        let item = #"{"\u0061\/":"\u0061\/","\u00e9":{"\u0061":1,"\ud83d\ude00\n":2}}"#
        #expect(try connection.create("names", "a", item).result != nil)
        #expect(try connection.item("names", "a") == item)
        for (path, value) in [("a/", #""a/""#), ("é.a", "1")] {
            let filter = #"{"op":"=","args":[{"property":"\#(path)"},\#(value)]}"#
            let page = try connection.call("record.query", #"{"collection":"names","filter":\#(filter)}"#).result
            #expect(page?["records"]?.elements?.count == 1, "\(path)")
        }
        let fields = try connection.read("names", "a", fields: #"["é.a"]"#).result?["item"]?.text
        #expect(fields == #"{"é":{"a":1}}"# || fields == #"{"\u00e9":{"\u0061":1}}"#, "\(fields ?? "")")
        let patch = #"{"é":{"\u0061":null},"a/":0}"#
        let patched = try connection.call("record.patch", Connection.params("names", "a", more: ["patch": patch]))
            .result
        let members = patched?["item"].map { JSON.compact($0.text) }
        #expect(members?.contains("😀") == true || members?.contains("ude00") == true)
        #expect(patched?["item"]?["a/"]?.integer == 0 && patched?["item"]?["é"]?["a"] == nil, "\(members ?? "")")
    }

    @Test func duplicateMembersAreAcceptedAndTheLastCounts() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let texts = [
            #"{"a":1,"a":2}"#, #"{"a":1,"b":{"c":1,"c":2},"a":3}"#, #"{"a":1,"\u0061":2}"#, #"[{"x":1,"x":[]}]"#,
        ]
        for (number, text) in texts.enumerated() {
            #expect(try connection.create("twice", "\(number)", text).result != nil)
            let stored = try #require(try connection.read("twice", "\(number)").result?["item"])
            #expect(try stored.means(JSON(parsing: text)), "\(text) came back as \(stored.text)")
        }
    }

    @Test func aLargeItemComesBackWhole() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let text = "[\"" + String(repeating: "0123456789abcdef", count: 4 * 65536 - 8) + "\"]"
        #expect(try connection.create("large", "a", text).result != nil)
        #expect(try connection.item("large", "a") == text)
    }
}
