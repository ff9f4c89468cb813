import CRUDJSON
import Testing

/// The form in which items are stored.
@Suite struct ItemNormalizationTests {
    private func normalized(_ item: String) -> String? {
        var normalization = ItemNormalization()
        return normalization.normalized(Array(item.utf8).span).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        "1", "null", #""a\u0041""#, "[]", "{}", #"{"a":1}"#, #"{"a":1,"b":2,"ab":3,"":4}"#, #" { "a" : [ 1 , {} ] } "#,
        // Each object has names of its own.
        #"{"a":{"a":{"a":[]}},"b":[{"a":1},{"a":2},["a","a"]]}"#, #"[{"a":1},{"a":1}]"#,
        // Contents of strings are ignored, brackets and quotes in them included.
        #"{"a":"a\"b\",\"a\":{","b":"}]\\","c":"\u0061","d":["c","c","c"]}"#,
        // Escapes, necessary or not.
        #"{"\u0061":1}"#, #"{"\/":1,"\u00e9":2,"\ud83d\ude00":3}"#, #"{"\u0022":1,"\u005C":2,"\u000A":3}"#,
        #"{"\"":1,"\\":2,"\n":3,"\u0001":4,"\u001f":5,"\b\f\r\t":6}"#,
        // Similar but not equal.
        "{\"\u{E9}\":1,\"e\u{301}\":2,\"\u{7F}\":3}", #"{"abcdefgh1":1,"abcdefgh2":2,"abcdefghi":3,"abcdefgh":4}"#,
        #"{"abcdefg1xyz":1,"abcdefg2xyz":2}"#, #"{"a":1,"A":2,"a ":3}"#,
    ])
    func mostItemsAreInNormalForm(item: String) {
        #expect(normalized(item) == nil)
    }

    @Test(arguments: [
        (#"{"a":1,"a":2}"#, #"{"a":2}"#), (#"{"a":1,"b":2,"a":3,"c":4,"a":5}"#, #"{"b":2,"c":4,"a":5}"#),
        (#" { "a" : 1 , "a" : 2 } "#, #" { "a" : 2 } "#), (#"{"":1,"":2}"#, #"{"":2}"#),
        (#"{"a":1,"\u0061":2}"#, #"{"\u0061":2}"#), (#"{"\u0061":1,"a":2}"#, #"{"a":2}"#),
        (#"{"\"":1,"\u0022":2,"\u00e9":3}"#, #"{"\u0022":2,"\u00e9":3}"#),
        // Nested, in members that are kept and in members that are removed.
        (#"{"x":[{"a":{"b":1,"b":2}}]}"#, #"{"x":[{"a":{"b":2}}]}"#),
        (#"{"a":{"b":1,"b":2},"c":0,"a":{"\u0064":1,"d":1}}"#, #"{"c":0,"a":{"d":1}}"#),
        (#"{"a":"{\"a\"","a":"\u0061,"}"#, #"{"a":"\u0061,"}"#),
        (#"[{"a":1,"a":[]},{"a":1}]"#, #"[{"a":[]},{"a":1}]"#),
    ])
    func theLastOfRepeatedMembersIsKept(item: String, expected: String) {
        #expect(normalized(item) == expected)
        #expect(normalized(expected) == nil)
    }

    /// More names than are compared in pairs, and names that differ only at their ends.
    @Test(arguments: [31, 32, 33, 34, 35, 1000])
    func manyMembers(count: Int) {
        let members = (0..<count).map { #""a long name that ends in \#($0)":\#($0)"# }
        #expect(normalized("{\(members.joined(separator: ","))}") == nil)
        for repeated in [0, count / 2, count - 1] {
            let again = #""a long name that ends in \#(repeated)":true"#
            var left = members
            left.remove(at: repeated)
            let item = "{\((members + [again]).joined(separator: ","))}"
            #expect(normalized(item) == "{\((left + [again]).joined(separator: ","))}")
        }
    }

    /// Any bytes: it terminates and reads nothing outside of them.
    @Test(arguments: [
        "", "{", "{\"", "{\"a", "{\"a\\", "{\"a\\\"", "}", "]}", "{\"a\":1,", "[[[", "\"\\", "{]{]", "{\"\\u\"}",
    ])
    func invalidJSONIsLeftUnchanged(item: String) {
        #expect(normalized(item) == nil)
    }

    @Test func depthIsNoProblem() {
        let depth = 100_000
        let open = String(repeating: #"{"a":["#, count: depth)
        let close = String(repeating: "]}", count: depth)
        #expect(normalized(open + close) == nil)
        #expect(normalized("\(open){\"a\":1,\"a\":2}\(close)") == "\(open){\"a\":2}\(close)")
    }
}
