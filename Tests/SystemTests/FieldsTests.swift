import CRUDTestSupport
import Testing

/// `fields` of `record.read`.
@Suite(.daemon) struct FieldsTests {
    @Test func projectTheItem() throws {
        let connection = try Daemon.shared.connect()
        let cases: [(item: String, fields: String, expected: String)] = [
            (#"{"a":1,"b":2}"#, #"["a"]"#, #"{"a":1}"#),
            (#"{"a":1,"b":2,"c":3}"#, #"["c","a"]"#, #"{"a":1,"c":3}"#),
            (#"{"a":1,"b":2}"#, #"["a","a"]"#, #"{"a":1}"#),
            (#"{"a":1}"#, #"["x"]"#, "{}"),
            (#"{"a":1,"b":2}"#, #"["x","b"]"#, #"{"b":2}"#),
            (#"{"a":null}"#, #"["a"]"#, #"{"a":null}"#),
            (#"{"a":{"b":1,"c":2},"d":3}"#, #"["a.b"]"#, #"{"a":{"b":1}}"#),
            (#"{"a":{"b":1,"c":2,"e":4},"d":3}"#, #"["a.b","a.c","d"]"#, #"{"a":{"b":1,"c":2},"d":3}"#),
            (#"{"a":{"b":{"c":{"d":1,"e":2}}}}"#, #"["a.b.c.e"]"#, #"{"a":{"b":{"c":{"e":2}}}}"#),
            (#"{"a":{"b":1,"c":2}}"#, #"["a"]"#, #"{"a":{"b":1,"c":2}}"#),
            (#"{"a":{"b":1,"c":2}}"#, #"["a","a.b"]"#, #"{"a":{"b":1,"c":2}}"#),
            (#"{"a":{"b":1,"c":2}}"#, #"["a.b","a"]"#, #"{"a":{"b":1,"c":2}}"#),
            (#"{"a.b":1,"a":{"b":2}}"#, #"["a\\.b"]"#, #"{"a.b":1}"#),
            (#"{"a.b":1,"a":{"b":2}}"#, #"["a.b"]"#, #"{"a":{"b":2}}"#),
            (#"{"a\\b":1,"ab":2}"#, #"["a\\\\b"]"#, #"{"a\\b":1}"#),
            (#"{"a.b":{"c.d":1,"e":2}}"#, #"["a\\.b.c\\.d"]"#, #"{"a.b":{"c.d":1}}"#),
            (#"{"a":[{"b":1}]}"#, #"["a"]"#, #"{"a":[{"b":1}]}"#),
            (#"{"a":1,"a":2}"#, #"["a"]"#, #"{"a":2}"#),
            (#"{"\u0061":1,"b":2}"#, #"["a"]"#, #"{"a":1}"#),
            (#"{"a":1,"b":2}"#, #"["\u0061"]"#, #"{"a":1}"#),
            ("{\"\u{E9}\":1,\"e\u{301}\":2}", "[\"\u{E9}\"]", "{\"\u{E9}\":1}"),
            (#"{"Name":1,"name":2}"#, #"["name"]"#, #"{"name":2}"#),
            (#"{"😀":1,"b":2}"#, #"["😀"]"#, #"{"😀":1}"#),
            (#"{"n":1e400,"m":0.10}"#, #"["n"]"#, #"{"n":1e400}"#),
            ("5", #"["a"]"#, "{}"), ("null", #"["a"]"#, "{}"), ("[1,2]", #"["0"]"#, "{}"),
            (#""text""#, #"["a"]"#, "{}"), ("true", #"["a"]"#, "{}"), ("{}", #"["a"]"#, "{}"),
        ]
        for (number, one) in cases.enumerated() {
            #expect(try connection.create("projected", "\(number)", one.item).result != nil)
            let record = try connection.read("projected", "\(number)", fields: one.fields).result
            #expect(record?.members?.map(\.name).sorted() == ["id", "item", "revision"])
            let item = try #require(record?["item"], "\(one)")
            #expect(try item.means(JSON(parsing: one.expected)), "\(one) gave \(item.text)")
        }
    }

    @Test func noneGivesIDAndRevisionAlone() throws {
        let connection = try Daemon.shared.connect()
        let revision = try connection.create("bare", "a", #"{"a":1}"#).result?["revision"]?.string
        let record = try connection.read("bare", "a", fields: "[]").result
        #expect(record?.members?.map(\.name).sorted() == ["id", "revision"])
        #expect(record?["id"]?.string == "a")
        #expect(record?["revision"]?.string == revision)
    }

    /// As many names as there may be, in one path and in many; one more is refused, and so are very many.
    @Test(arguments: [(0, true), (1, false), (1_000_000, false)])
    func aThousandNamesAreAcceptedAndNoMore(excess: Int, isAccepted: Bool) throws {
        let connection = try Daemon.shared.connect()
        _ = try connection.upsert("wanted", "a", #"{"a":{"b":1},"c":2}"#)
        let deep = "\"" + String(repeating: ".", count: 499 + excess) + "\""
        let many = (0..<499).map { "\"f\($0)\"" }.joined(separator: ",")
        let reply = try connection.read("wanted", "a", fields: "[\(deep),\(many),\"c\"]")
        if isAccepted {
            #expect(reply.result?["item"]?.text == #"{"c":2}"#)
        } else {
            #expect(reply.error?.name == "limit_exceeded")
            #expect(reply.error?.details?["maximum"]?.integer == 1000)
        }
        #expect(try connection.isUsable())
    }

    @Test(arguments: [#""a""#, "5", "null", "{}", "[5]", "[null]", #"[["a"]]"#])
    func mustBeAListOfStrings(fields: String) throws {
        let connection = try Daemon.shared.connect()
        _ = try connection.upsert("faulty", "a", "1")
        let error = try connection.read("faulty", "a", fields: fields).error
        #expect(error?.name == "invalid_params")
        #expect(error?.details?["member"]?.string == "fields")
    }
}
