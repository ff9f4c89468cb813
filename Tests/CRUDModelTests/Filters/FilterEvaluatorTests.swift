import CRUDJSON
import CRUDModel
import Testing

/// Conditions on items. Random ones are compared with a reference in ``RandomFilterTests``.
@Suite struct FilterEvaluatorTests {
    private func evaluate(_ filter: String, _ item: String) throws -> Bool? {
        var evaluator = try FilterEvaluator(try Filter(cql2Text: filter))
        return try evaluator.evaluate(Array(item.utf8).span)
    }

    @Test(arguments: [
        // A comparison with a missing or null property, between two types, or of an array or object is unknown.
        ("a = 1", "{}", nil), ("a = 1", #"{"a":null}"#, nil), ("a = 1", #"{"a":"1"}"#, nil),
        ("a = '1'", #"{"a":1}"#, nil),
        ("a = 1", #"{"a":[1]}"#, nil), ("a <> 1", #"{"a":{}}"#, nil), ("a = true", #"{"a":1}"#, nil),
        ("a.b = 1", #"{"a":1}"#, nil),
        ("a.b = 1", #"{"a":[{"b":1}]}"#, nil), ("a = 1", "1", nil), ("a = 1", "[]", nil),
        ("a < 'x'", #"{"a":true}"#, nil),
        ("a = 1", #"{"a":1}"#, true), ("a.b = 1", #"{"a":{"b":1}}"#, true), ("a <> 1", #"{"a":2}"#, true),
        ("a < true", #"{"a":false}"#, true), ("a >= false", #"{"a":false}"#, true),
        ("a > false", #"{"a":false}"#, false),
        // Three values.
        ("a = 1 AND b = 1", #"{"b":2}"#, false), ("a = 1 AND b = 1", #"{"b":1}"#, nil),
        ("a = 1 OR b = 1", #"{"b":1}"#, true),
        ("a = 1 OR b = 1", #"{"b":2}"#, nil), ("NOT a = 1", "{}", nil), ("NOT a = 1", #"{"a":1}"#, false),
        ("TRUE", "{}", true),
        // isNull is true for missing and null.
        ("a IS NULL", "{}", true), ("a IS NULL", #"{"a":null}"#, true), ("a IS NULL", #"{"a":0}"#, false),
        ("a.b IS NULL", #"{"a":1}"#, true),
        ("a IS NOT NULL", #"{"a":[]}"#, true), ("a IS NULL", "3", true),
        // between and in.
        ("a BETWEEN 1 AND 3", #"{"a":3}"#, true), ("a BETWEEN 1 AND 3", #"{"a":0}"#, false),
        ("a BETWEEN 1 AND 'x'", #"{"a":2}"#, nil),
        ("a BETWEEN 1 AND 'x'", #"{"a":0}"#, false), ("a BETWEEN 'a' AND 'c'", #"{"a":"b"}"#, true),
        ("a BETWEEN 1 AND 3", "{}", nil),
        ("a IN (1, 2)", #"{"a":2.0}"#, true), ("a IN (1, 2)", #"{"a":3}"#, false), ("a IN (1, 'x')", #"{"a":3}"#, nil),
        ("a IN (1, 'x')", #"{"a":"x"}"#, true), ("a IN (1)", "{}", nil), ("a IN ()", "{}", false),
        ("a IN (TRUE)", #"{"a":true}"#, true),
        ("a IN (TRUE)", #"{"a":false}"#, false), ("a IN (1)", #"{"a":[1]}"#, nil),
        // a_contains.
        ("A_CONTAINS(a, ('x', 1))", #"{"a":[1.0,[],"x",null]}"#, true),
        ("A_CONTAINS(a, ('x', 2))", #"{"a":[1,"x"]}"#, false),
        ("A_CONTAINS(a, ())", #"{"a":[]}"#, true), ("A_CONTAINS(a, ())", #"{"a":{}}"#, nil),
        ("A_CONTAINS(a, (1))", "{}", nil),
        ("A_CONTAINS(a, (1, 1.0))", #"{"a":[1]}"#, true), ("A_CONTAINS(a, ('1'))", #"{"a":[1]}"#, false),
        // Numbers.
        ("a = 0", #"{"a":-0}"#, true), ("a = 0", #"{"a":-0.0}"#, true), ("a = 1", #"{"a":1.0}"#, true),
        ("a = 1", #"{"a":10e-1}"#, true),
        ("a > 9007199254740992", #"{"a":9007199254740993}"#, true),
        ("a = 9007199254740993", #"{"a":9007199254740993.0}"#, false),
        ("a = 9007199254740992", #"{"a":9007199254740993.0}"#, true),
        ("a < 9223372036854775808", #"{"a":9223372036854775807}"#, true),
        ("a = 9223372036854775808", #"{"a":9223372036854775809}"#, true),
        ("a > 9223372036854775807", #"{"a":9223372036854775807.0}"#, true),
        ("a = 1e400", #"{"a":2e400}"#, true), ("a < 1e400", #"{"a":1.7976931348623157e308}"#, true),
        ("a > -1e400", #"{"a":-9223372036854775809}"#, true),
        ("a = 0", #"{"a":1e-400}"#, true), ("a = -9223372036854775808", #"{"a":-9.223372036854775808e18}"#, true),
        ("a < 0.5", #"{"a":0}"#, true),
        ("a > -0.5", #"{"a":0}"#, true), ("a < -0.5", #"{"a":-1}"#, true),
        ("a = 0.1", #"{"a":0.1000000000000000055511151231257827}"#, true),
        // Text is compared by code point.
        ("a > '\u{FFFD}'", #"{"a":"😀"}"#, true), ("a = '\u{E9}'", "{\"a\":\"e\u{301}\"}", false),
        ("a = 'é'", #"{"a":"\u00e9"}"#, true),
        ("a < 'b'", #"{"a":"B"}"#, true), ("a > 'a'", #"{"a":"aa"}"#, true), ("a = 'a\"b'", #"{"a":"a\"b"}"#, true),
        // Names too, and of repeated members the last one counts.
        ("é = 1", #"{"\u00e9":1}"#, true), ("a = 1", #"{"a":2,"\u0061":1}"#, true), ("a = 2", #"{"a":2,"a":1}"#, false),
        ("a.b = 1", #"{"a":{"b":1},"a":{"c":1}}"#, nil), ("a.b = 1", #"{"a":{"b":1},"a":2}"#, nil),
        ("a = 1 AND a.b = 1", #"{"a":{"b":1}}"#, nil),
        (#""a\.b" = 1"#, #"{"a":{"b":2},"a.b":1}"#, true), (#""" = 1"#, #"{"":1}"#, true),
    ])
    func threeValuedLogic(filter: String, item: String, expected: Bool?) throws {
        #expect(try evaluate(filter, item) == expected)
    }

    @Test(arguments: [
        ("a", "a", true), ("a", "A", false), ("", "", true), ("", "a", false), ("%", "", true), ("%", "abc", true),
        ("_", "", false), ("_", "é", true),
        ("_", "😀", true), ("_", "e\u{301}", false), ("__", "e\u{301}", true), ("B%", "Bonn", true),
        ("%nn", "Bonn", true), ("%n", "Bonnn", true),
        ("B%n_", "Bonnn", true), ("%o%n%", "Bonn", true), ("%x%", "Bonn", false), (#"\%"#, "%", true),
        (#"\%"#, "x", false), (#"\_x"#, "_x", true),
        (#"\_x"#, "ax", false), (#"\\"#, #"\"#, true), ("%%a%%", "bab", true), ("%_", "", false), ("%_%", "é", true),
        ("_%_", "ab", true), ("a%a", "a", false),
        ("%ab%ab", "abab", true), ("%ab%ab", "ab", false), ("%é", "éé", true),
    ])
    func like(pattern: String, text: String, expected: Bool) throws {
        var evaluator = try FilterEvaluator(.like(PropertyPath(names: ["a"]), pattern: pattern))
        var writer = JSONWriter()
        writer.object { $0.member("a", text) }
        #expect(try evaluator.evaluate(writer.bytes.span) == expected)
        #expect(try evaluator.evaluate(Array(#"{"a":1}"#.utf8).span) == nil)
    }

    /// Patterns that take a backtracking matcher exponential time.
    @Test func likeTakesAtMostPatternTimesText() throws {
        let text = String(repeating: "a", count: 5000)
        var evaluator = try FilterEvaluator(
            .like(PropertyPath(names: ["a"]), pattern: String(repeating: "%a", count: 500) + "%b"))
        #expect(try evaluator.evaluate(Array(#"{"a":"\#(text)"}"#.utf8).span) == false)
    }

    @Test(arguments: [#"a\"#, #"\a"#, #"\é"#])
    func invalidPatterns(pattern: String) {
        let error = #expect(throws: CRUDError.self) {
            _ = try FilterEvaluator(.not(.like(PropertyPath(names: ["a"]), pattern: pattern)))
        }
        #expect(error?.code == .invalidQuery)
    }

    @Test(arguments: ["", "{", #"{"a":1"#, #"{"a":1} x"#, #"{"a":tru}"#, #"{"b":{"c":}}"#])
    func invalidJSONIsRejected(item: String) {
        #expect(throws: JSONSyntaxError.self) { try evaluate("a = 1 OR b.c = 1", item) }
    }

    @Test func anEvaluatorForgetsTheItemBefore() throws {
        var evaluator = try FilterEvaluator(try Filter(cql2Text: "a.b = 1 OR c = 1"))
        for (item, expected) in [(#"{"a":{"b":1}}"#, true), ("{}", nil), (#"{"c":1}"#, true), ("3", nil)] {
            #expect(try evaluator.evaluate(Array(item.utf8).span) == expected)
        }
    }

    /// No item has a property with a path that is longer than items may nest, whatever its length.
    @Test func endlessPaths() throws {
        for count in [1000, 1001, 1002, 200_000] {
            let path = PropertyPath(names: [String](repeating: "a", count: count))
            var evaluator = try FilterEvaluator(.isNull(path))
            let open = String(repeating: #"{"a":"#, count: count)
            let item = Array((open + "1" + String(repeating: "}", count: count)).utf8)
            #expect(try evaluator.evaluate(item.span) == (count > 1001))
        }
    }

    @Test func manyPathsAndManyLiterals() throws {
        let paths = (0..<900).map {
            Filter.comparison(.equal, PropertyPath(names: ["m\($0)"]), .number(JSONNumber($0)))
        }
        let item = Array("{\((0..<900).map { #""m\#($0)":\#($0)"# }.joined(separator: ","))}".utf8)
        var evaluator = try FilterEvaluator(.and(paths))
        #expect(try evaluator.evaluate(item.span) == true)
        let strings = (0..<5000).map { Literal.string("s\($0)") }
        let numbers = (0..<5000).map { Literal.number(JSONNumber($0)) }
        evaluator = try FilterEvaluator(.isIn(PropertyPath(names: ["a"]), strings + numbers))
        #expect(try evaluator.evaluate(Array(#"{"a":"s4999"}"#.utf8).span) == true)
        #expect(try evaluator.evaluate(Array(#"{"a":4999.0}"#.utf8).span) == true)
        #expect(try evaluator.evaluate(Array(#"{"a":5000}"#.utf8).span) == nil)
    }
}
