import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

/// The order of records.
@Suite struct SortTests {
    private func order(_ text: String) throws -> SortOrder { try SortOrder(json: Array(text.utf8).span) }

    private func position(_ order: SortOrder, _ item: String, _ id: String = "") throws -> SortPosition {
        var reader = SortValueReader(order)
        let item = Array(item.utf8)
        try reader.find(in: item.span)
        return reader.position(id: Array(id.utf8).span, in: item.span)
    }

    /// Each group ties, and precedes the next one.
    private static let groups = [
        ["{}", #"{"a":null}"#, "1"], [#"{"a":false}"#], [#"{"a":true}"#], [#"{"a":-1e400}"#],
        [#"{"a":-9223372036854775809}"#],
        [#"{"a":-9223372036854775807}"#], [#"{"a":-1.5}"#], [#"{"a":-1}"#],
        [#"{"a":0}"#, #"{"a":-0.0}"#, #"{"a":1e-400}"#], [#"{"a":0.5}"#],
        [#"{"a":1}"#, #"{"a":1.0}"#, #"{"a":10e-1}"#], [#"{"a":9007199254740992}"#, #"{"a":9007199254740993.0}"#],
        [#"{"a":9007199254740993}"#],
        [#"{"a":9223372036854775807}"#], [#"{"a":9223372036854775808}"#, #"{"a":9223372036854775809}"#],
        [#"{"a":1e400}"#, #"{"a":2e400}"#],
        [#"{"a":""}"#], [#"{"a":"A"}"#], [#"{"a":"a"}"#, #"{"a":"\u0061"}"#], [#"{"a":"a\u0000"}"#],
        [#"{"a":"e\u0301"}"#], [#"{"a":"é"}"#],
        [#"{"a":"�"}"#], [#"{"a":"😀"}"#], [#"{"a":[]}"#, #"{"a":[1]}"#], [#"{"a":{}}"#, #"{"a":{"b":1}}"#],
    ]

    @Test func typesAndValues() throws {
        let ascending = try order(#"[{"property":"a","order":"asc"}]"#)
        let descending = try order(#"[{"property":"a","order":"desc"}]"#)
        for (left, leftGroup) in Self.groups.enumerated() {
            for (right, rightGroup) in Self.groups.enumerated() {
                for (first, second) in leftGroup.flatMap({ first in rightGroup.map { (first, $0) } }) {
                    let (one, other) = (try position(ascending, first), try position(ascending, second))
                    #expect(ascending.compare(one, other).signum() == (left - right).signum(), "\(first) \(second)")
                    #expect(descending.compare(one, other).signum() == (right - left).signum(), "\(first) \(second)")
                }
            }
        }
    }

    @Test func keysDecideInTurnAndTheIDLast() throws {
        let sort = try order(#"[{"property":"a","order":"desc"},{"property":"b.c","order":"asc"}]"#)
        let sorted = [
            (#"{"a":2,"b":{"c":9}}"#, "z"), (#"{"a":1}"#, "k"), (#"{"a":1,"b":{"c":1}}"#, "a"),
            (#"{"a":1,"b":{"c":1.0}}"#, "b"),
            (#"{"a":1,"b":{"c":2}}"#, "a"), ("{}", "B"), ("{}", "a"), ("{}", "é"), ("{}", "\u{FFFD}"), ("{}", "😀"),
        ]
        let positions = try sorted.map { try position(sort, $0.0, $0.1) }
        for (left, right) in zip(positions, positions.dropFirst()) {
            #expect(sort.compare(left, right) < 0)
            #expect(sort.compare(right, left) > 0)
            #expect(sort.compare(left, left) == 0)
        }
        #expect(SortOrder().compare(SortPosition(values: [], id: [1]), SortPosition(values: [], id: [2])) < 0)
    }

    @Test func positionsAreWrittenAndReadBack() throws {
        let sort = try order(#"[{"property":"a"}]"#)
        for item in Self.groups.joined() {
            let before = try position(sort, item, "i\"d\n😀")
            let after = try SortPosition(json: before.json.span, count: 1)
            #expect(
                after == before && sort.compare(before, after) == 0, "\(String(decoding: before.json, as: UTF8.self))")
        }
        #expect(
            String(decoding: try position(sort, #"{"a":0.10}"#, "x").json, as: UTF8.self)
                == #"{"values":[0.1],"id":"x"}"#)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func randomPositionsSurviveWritingAndReading(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed, isUntidy: true)
        for _ in 0..<200 {
            let sort = try order(author.sort())
            let before = try position(sort, author.item(), "x")
            #expect(try SortPosition(json: before.json.span, count: sort.keys.count) == before)
            var writer = JSONWriter()
            sort.write(to: &writer)
            #expect(try SortOrder(json: writer.bytes.span) == sort)
        }
    }

    @Test(arguments: [
        "", "{}", "[]", "1", #"{"values":[]}"#, #"{"id":"x"}"#, #"{"values":[],"id":1}"#, #"{"values":1,"id":"x"}"#,
        #"{"values":[],"id":"x","y":1}"#,
        #"{"values":[],"id":"x"} 1"#, #"{"values":[],"id":"x","id":"y"}"#, #"{"values":[1],"id":"x"}"#,
        #"{"values":[1"#,
    ])
    func otherTextsAreRejected(text: String) {
        let error = #expect(throws: CRUDError.self) { try SortPosition(json: Array(text.utf8).span, count: 0) }
        #expect(error?.code == .invalidQuery)
    }

    @Test func theParameter() throws {
        #expect(try order("[]") == SortOrder())
        let sort = try order(#" [ { "order" : "desc" , "property" : "a\\.b.c" } , { "property" : "d" } ] "#)
        let keys = [
            SortKey(PropertyPath(names: ["a.b", "c"]), isDescending: true), SortKey(PropertyPath(names: ["d"])),
        ]
        #expect(sort == SortOrder(keys))
    }

    @Test(arguments: [
        "", "{}", "1", "null", #"["a"]"#, "[[]]", "[{}]", #"[{"order":"asc"}]"#, #"[{"property":1}]"#,
        #"[{"property":"a","order":"up"}]"#,
        #"[{"property":"a","order":1}]"#, #"[{"property":"a","x":1}]"#, #"[{"property":"a","property":"b"}]"#,
        #"[{"property":"a\\b"}]"#, "[] 1",
        #"[{"property":"a"}"#,
    ])
    func errorsNameTheParameter(text: String) {
        let error = #expect(throws: CRUDError.self) { try order(text) }
        #expect(error?.code == .invalidParams)
        #expect(error?.details.member == "sort")
    }
}
