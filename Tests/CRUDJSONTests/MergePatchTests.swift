import CRUDJSON
import Testing

/// JSON Merge Patch over bytes.
@Suite struct MergePatchTests {
    private func apply(_ patch: String, to item: String) throws -> String {
        let result = try MergePatch.apply(Array(patch.utf8).span, to: Array(item.utf8).span)
        return String(decoding: result, as: UTF8.self)
    }

    /// RFC 7396, appendix A: original, patch, result.
    @Test(arguments: [
        (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
        (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
        (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
        (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
        (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
        (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
        (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
        (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
        (#"{"a":"foo"}"#, #"null"#, #"null"#),
        (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
        (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
        (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
        (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
    func appendixA(item: String, patch: String, result: String) throws {
        #expect(try apply(patch, to: item) == result)
    }

    @Test(arguments: [
        // What is not changed keeps its text and its place.
        (#"{"a":1.50e+2,"b":"\u0041","c":[1, 2]}"#, #"{"d":1}"#, #"{"a":1.50e+2,"b":"\u0041","c":[1, 2],"d":1}"#),
        (#"{"a":1,"b":2,"c":3}"#, #"{"c":9,"b":8}"#, #"{"a":1,"b":8,"c":9}"#),
        (#"{"a":1,"b":2,"c":3}"#, #"{"b":null}"#, #"{"a":1,"c":3}"#),
        (
            #"{"x":{"a":1,"b":{"c":[]}},"y":2}"#, #"{"x":{"b":{"d":0.10}}}"#,
            #"{"x":{"a":1,"b":{"c":[],"d":0.10}},"y":2}"#
        ),
        ("{}", #"{"z":1,"a":2}"#, #"{"z":1,"a":2}"#),
        // White space between the members of changed objects is removed, no other.
        (" { \"a\" : 1 , \"b\" : [ 1 ] } ", " { \"c\" : [ 2 ] } ", #"{"a":1,"b":[ 1 ],"c":[ 2 ]}"#),
        // Names are compared by value.
        (#"{"\u0061":1,"é":2}"#, #"{"a":3,"\u00e9":null}"#, #"{"\u0061":3}"#),
        ("{\"e\u{301}\":1}", "{\"\u{E9}\":2}", "{\"e\u{301}\":1,\"\u{E9}\":2}"),
        // Of repeated members the last one counts.
        (#"{"a":1}"#, #"{"a":2,"a":null}"#, "{}"), (#"{"a":1}"#, #"{"a":null,"\u0061":2}"#, #"{"a":2}"#),
        (#"{"a":{"x":1}}"#, #"{"a":{"y":1},"a":{"z":2}}"#, #"{"a":{"x":1,"z":2}}"#),
        (#"{"a":1,"a":{"b":1}}"#, #"{"a":{"c":2}}"#, #"{"a":{"c":2},"a":{"b":1,"c":2}}"#),
        (#"{"a":1,"a":2}"#, #"{"a":null}"#, "{}"),
        // Null within an object that replaces a scalar is removed, null within an array is kept.
        (#"{"a":1}"#, #"{"a":{"b":null,"c":[null,{"d":null}]}}"#, #"{"a":{"c":[null,{"d":null}]}}"#),
        ("3", #"{"a":{"b":null}}"#, #"{"a":{}}"#), (#"{"a":1}"#, "{}", #"{"a":1}"#), ("[1]", "{}", "{}"),
        ("3", "false", "false"), ("null", #"{"a":null}"#, "{}"),
    ])
    func keepsWhatItDoesNotChange(item: String, patch: String, result: String) throws {
        #expect(try apply(patch, to: item) == result)
    }

    @Test(arguments: [
        ("{", "{}"), ("{}", #"{"a":1"#), ("{} {}", "{}"), ("{}", "{} {}"), ("", "{}"), ("{}", ""), ("1 2", "3"),
        ("null 1", "3"), (#"{"a":}"#, "{}"), (#"{"a":1}"#, #"{"a":tru}"#),
    ])
    func invalidJSONIsRejected(patch: String, item: String) {
        #expect(throws: JSONSyntaxError.self) { try apply(patch, to: item) }
    }

    /// Nested values must not be scanned repeatedly.
    @Test func deepPatchesTakeLinearTime() throws {
        let depth = 1000
        let open = String(repeating: #"{"a":"#, count: depth)
        let close = String(repeating: "}", count: depth)
        let long = String(repeating: "x", count: 1 << 20)
        let item = "\(open){\"long\":\"\(long)\"}\(close)"
        let patched = try apply("\(open){\"b\":1}\(close)", to: item)
        #expect(patched.utf8.elementsEqual("\(open){\"long\":\"\(long)\",\"b\":1}\(close)".utf8))
    }
}
