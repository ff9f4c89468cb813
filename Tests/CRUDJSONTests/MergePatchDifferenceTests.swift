import CRUDJSON
import Testing

@Suite struct MergePatchDifferenceTests {
    @Test(
        arguments: [
            (#"{"a":1}"#, #"{"a":1}"#, nil),
            (#"{"a":1,"b":2}"#, #"{ "b" : 2, "a" : 1 }"#, nil),
            (#"{"a":1}"#, #"{"a":2}"#, #"{"a":2}"#),
            (#"{"a":1}"#, #"{"a":1,"b":[1,{"c":null}]}"#, #"{"b":[1,{"c":null}]}"#),
            (#"{"a":1,"b":2}"#, #"{"b":2}"#, #"{"a":null}"#),
            (#"{"a":1,"b":2}"#, #"{"a":null,"b":2}"#, #"{"a":null}"#),
            (#"{"b":2}"#, #"{"a":null,"b":2}"#, nil),
            (#"{"o":{"a":1,"b":{"c":1}}}"#, #"{"o":{"a":1,"b":{"c":2,"d":3}}}"#, #"{"o":{"b":{"c":2,"d":3}}}"#),
            (#"{"o":{"a":1}}"#, #"{"o":{}}"#, #"{"o":{"a":null}}"#),
            (#"{"o":1}"#, #"{"o":{}}"#, #"{"o":{}}"#),
            (#"{"o":{"a":1}}"#, #"{"o":[]}"#, #"{"o":[]}"#),
            (#"{"l":[1,2]}"#, #"{"l":[2,1]}"#, #"{"l":[2,1]}"#),
            (#"{"l":[{"a":1,"b":2}]}"#, #"{"l":[{"b":2,"a":1}]}"#, nil),
            (#"{"a":"é\n"}"#, #"{"a":"\u00e9\u000a"}"#, nil),
            (#"{"é":1}"#, #"{"\u0065\u0301":1}"#, "{\"e\u{301}\":1,\"é\":null}"),
            (#"{"a":1.0}"#, #"{"a":1}"#, #"{"a":1}"#),
            (#"{"a":1,"a":2}"#, #"{"a":2}"#, nil),
            ("1", "2", "2"), ("1", #"{"a":1}"#, #"{"a":1}"#), (#"{"a":1}"#, "null", "null"), ("[1]", "[1]", nil),
        ] as [(String, String, String?)])
    func containsTheDifferences(_ before: String, _ after: String, _ patch: String?) throws {
        let difference = try MergePatch.difference(from: Array(before.utf8), to: Array(after.utf8))
        #expect(difference == patch.map { Array($0.utf8) })
        let patched = try difference.map { try MergePatch.apply($0.span, to: Array(before.utf8).span) }
        // After the patch there is no difference.
        if let patched { #expect(try MergePatch.difference(from: patched, to: Array(after.utf8)) == nil) }
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, "{}", nil),
            (#"{"a":1,"b":2}"#, "{}", #"{"b":null}"#),
            (#"{"a":1}"#, #"{"a":2}"#, #"{"a":2}"#),
            (#"{"o":{"a":1}}"#, #"{"o":{}}"#, nil),
            (#"{"o":{"a":1,"b":2}}"#, #"{"o":{}}"#, #"{"o":{"b":null}}"#),
            (#"{"o":{"a":1}}"#, "{}", #"{"o":null}"#),
            ("{}", #"{"o":{}}"#, #"{"o":{}}"#),
            (#"{"o":[{"a":1}]}"#, #"{"o":[{}]}"#, #"{"o":[{}]}"#),
        ] as [(String, String, String?)])
    func removesNothingThatIsKept(_ before: String, _ after: String, _ patch: String?) throws {
        let difference = try MergePatch.difference(
            from: Array(before.utf8), to: Array(after.utf8), keeping: [["a"], ["o", "a"]])
        #expect(difference == patch.map { Array($0.utf8) })
    }
}
