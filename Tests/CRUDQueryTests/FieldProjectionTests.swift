import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDTestSupport
import Testing

/// The part of an item that a caller asks for.
@Suite struct FieldProjectionTests {
    private func projection(_ paths: [String]) throws -> FieldProjection {
        let list = "[" + paths.map(JSON.quote).joined(separator: ",") + "]"
        return try FieldProjection(json: Array(list.utf8).span)
    }

    private func project(_ item: String, _ paths: [String]) throws -> String {
        let projection = try projection(paths)
        let bytes = Array(item.utf8)
        var output = Array("→".utf8)
        try projection.append(of: bytes.span, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    @Test(arguments: [
        // What is named, as it stands, in the order of the paths.
        (#"{"a":1,"b":2,"c":3}"#, ["a"], #"{"a":1}"#), (#"{"a":1,"b":2}"#, ["b", "a"], #"{"b":2,"a":1}"#),
        (#"{"a":1.50e+2,"b":[1, 2]}"#, ["a", "b"], #"{"a":1.50e+2,"b":[1, 2]}"#),
        (#" { "a" : { "x" : 1 } } "#, ["a"], #"{"a":{ "x" : 1 }}"#), (#"{"a":null}"#, ["a"], #"{"a":null}"#),
        // What is not there is left out.
        (#"{"a":1}"#, ["b"], "{}"), (#"{"a":1}"#, ["b", "a", "c"], #"{"a":1}"#), ("{}", ["a"], "{}"),
        (#"{"a":1}"#, [], "{}"), (#"{"A":1}"#, ["a"], "{}"),
        // Nested.
        (#"{"a":{"b":{"c":1,"d":2},"e":3}}"#, ["a.b.c"], #"{"a":{"b":{"c":1}}}"#),
        (#"{"a":{"b":1,"c":2,"d":3}}"#, ["a.b", "a.d"], #"{"a":{"b":1,"d":3}}"#),
        (#"{"a":{"b":1},"x":{"b":2}}"#, ["a.b", "x.b"], #"{"a":{"b":1},"x":{"b":2}}"#),
        (#"{"a":{"b":1}}"#, ["a.c"], "{}"), (#"{"x":{},"a":{"b":1}}"#, ["x.y", "a.b"], #"{"a":{"b":1}}"#),
        (#"{"a":1}"#, ["a.b"], "{}"), (#"{"a":[{"b":1}]}"#, ["a.b"], "{}"), (#"{"a":null}"#, ["a.b"], "{}"),
        (#"{"a":{"b":1}}"#, ["b"], "{}"),
        // A path and one beneath it.
        (#"{"a":{"b":1,"c":2}}"#, ["a", "a.b"], #"{"a":{"b":1,"c":2}}"#),
        (#"{"a":{"b":1,"c":2}}"#, ["a.b", "a"], #"{"a":{"b":1,"c":2}}"#), (#"{"a":1}"#, ["a", "a"], #"{"a":1}"#),
        // Names with dots and backslashes, and empty ones.
        (#"{"a.b":1,"a":{"b":2}}"#, [#"a\.b"#], #"{"a.b":1}"#), (#"{"a\\":1}"#, [#"a\\"#], #"{"a\\":1}"#),
        (#"{"a\\":{".":1}}"#, [#"a\\.\."#], #"{"a\\":{".":1}}"#), (#"{"":1}"#, [""], #"{"":1}"#),
        (#"{"":{"":1},"a":{"":2}}"#, [".", "a."], #"{"":{"":1},"a":{"":2}}"#),
        // Names are compared by value, and come back as they are spelt.
        (#"{"\u0061\u00e9":1}"#, ["aé"], #"{"\u0061\u00e9":1}"#),
        (#"{"\ud83d\ude00":1}"#, ["😀"], #"{"\ud83d\ude00":1}"#),
        ("{\"e\u{301}\":1}", ["\u{E9}"], "{}"),
        // Of members with one name the last counts.
        (#"{"a":1,"a":2}"#, ["a"], #"{"a":2}"#), (#"{"a":1,"\u0061":2}"#, ["a"], #"{"\u0061":2}"#),
        (#"{"a":{"b":1},"a":{"c":2}}"#, ["a.b"], "{}"), (#"{"a":{"b":1},"a":3}"#, ["a.b"], "{}"),
        // What is no object.
        ("1", ["a"], "{}"), ("null", ["a"], "{}"), (#"[{"a":1}]"#, ["a"], "{}"), (#""a""#, ["a"], "{}"),
        ("true", [], "{}"),
    ])
    func keepsWhatIsNamed(item: String, paths: [String], expected: String) throws {
        #expect(try project(item, paths) == "→" + expected)
    }

    @Test(arguments: [#"\"#, #"a\"#, #"a\b"#, #"a.\"#, #"\a"#, #"a\\\"#, #"a\/b"#])
    func aBackslashEscapesDotsAndBackslashes(path: String) {
        let error = #expect(throws: CRUDError.self) { try projection([path]) }
        #expect(error?.code == .invalidParams && error?.details.member == "fields")
    }

    @Test(arguments: ["", "{}", "1", "[1]", #"["a",null]"#, #"["a"] 1"#, #"["a""#, #""a""#])
    func anythingButAListOfPathsIsRefused(json: String) {
        let error = #expect(throws: CRUDError.self) { try FieldProjection(json: Array(json.utf8).span) }
        #expect(error?.code == .invalidParams && error?.details.member == "fields")
    }

    @Test func tellsWhetherAnythingIsWanted() throws {
        #expect(try projection([]).isEmpty)
        #expect(try !projection([""]).isEmpty)
    }

    @Test func invalidJSONIsRefused() {
        #expect(throws: JSONSyntaxError.self) { try project(#"{"a":1"#, ["a"]) }
        #expect(throws: JSONSyntaxError.self) { try project("", ["a"]) }
        #expect(throws: JSONSyntaxError.self) { try project(#"{"a":tru}"#, ["a"]) }
    }

    @Test func manyPathsAndManyMembers() throws {
        let members = (0..<5000).map { #""m\#($0)":\#($0)"# }
        let item = "{\(members.joined(separator: ","))}"
        #expect(try project(item, (0..<5000).map { "m\($0)" }) == "→" + item)
        let even = stride(from: 0, to: 5000, by: 2)
        #expect(
            try project(item, even.map { "m\($0)" }) == "→{\(even.map { members[$0] }.joined(separator: ","))}")
    }

    @Test func longPathsDoNotExhaustTheStack() throws {
        #expect(try project(#"{"a":{"a":1}}"#, [String(repeating: "a.", count: 300_000)]) == "→{}")
        let depth = 1000
        let item = String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth)
        let path = repeatElement("a", count: depth).joined(separator: ".")
        #expect(try project(item, [path]) == "→" + item)
        #expect(try project(item, [path + ".a"]) == "→{}")
    }
}
