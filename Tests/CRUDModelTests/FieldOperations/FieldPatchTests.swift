import CRUDJSON
import CRUDModel
import Testing

/// Field operations on items.
@Suite struct FieldPatchTests {
    /// What the operations make of the item; or the error, as its name and what it is about.
    private func apply(_ operations: String, to item: String, maximumDepth: Int = 128) throws -> String {
        do throws(CRUDError) {
            return try FieldPatch.apply(operations, to: item, maximumDepth: maximumDepth)
        } catch {
            let subject = error.details.member ?? error.details.path ?? error.details.limit
            return "\(error.code.name) \(subject ?? "")"
        }
    }

    @Test(arguments: [
        // Paths.
        (#"{"n":1}"#, #"{"increment":{"n":2}}"#, #"{"n":3}"#),
        (#"{"a":{"b":1,"c":"x"},"d":[]}"#, #"{"increment":{"a.b":2}}"#, #"{"a":{"b":3,"c":"x"},"d":[]}"#),
        (#"{"a.b":1,"a":{"b":1}}"#, #"{"increment":{"a\\.b":2}}"#, #"{"a.b":3,"a":{"b":1}}"#),
        (#"{"":1,"a":{"":1}}"#, #"{"increment":{"":2,"a.":3}}"#, #"{"":3,"a":{"":4}}"#),
        (#"{"\u0061":1}"#, #"{"increment":{"a":2}}"#, #"{"\u0061":3}"#),
        ("{\"e\u{301}\":1}", "{\"increment\":{\"\u{E9}\":2}}", "{\"e\u{301}\":1,\"\u{E9}\":2}"),
        // What is missing or null.
        ("{}", #"{"increment":{"a.b.c":1,"a.b.d":2}}"#, #"{"a":{"b":{"c":1,"d":2}}}"#),
        (#"{"a":null,"n":null}"#, #"{"increment":{"a.b":1},"append":{"n":[1]}}"#, #"{"a":{"b":1},"n":[1]}"#),
        ("null", #"{"increment":{"a":1}}"#, #"{"a":1}"#), ("null", "{}", "{}"), ("{}", #"{"increment":{}}"#, "{}"),
        (
            "{}",
            #"{"minimum":{"a":1.50},"maximum":{"b":-2e1},"append":{"c":[1,1]},"add":{"d":[1,1.0]},"remove":{"e":[1]}}"#,
            #"{"a":1.50,"b":-2e1,"c":[1,1],"d":[1],"e":[]}"#
        ),
        (#"{"b":{"x":1},"a":1}"#, #"{"increment":{"c\"\n":1}}"#, #"{"b":{"x":1},"a":1,"c\"\n":1}"#),
        // Other members keep their text and their order.
        (
            #"{"z":1e400,"a":{"y":0.10,"n":1,"x":"\u0041"},"b":[1, 2]}"#, #"{"increment":{"a.n":1}}"#,
            #"{"z":1e400,"a":{"y":0.10,"n":2,"x":"\u0041"},"b":[1, 2]}"#
        ),
        // Other types.
        (#"{"a":"1"}"#, #"{"increment":{"a":1}}"#, "unsupported a"),
        (#"{"a":{"b.[c":true}}"#, #"{"append":{"a.b\\.[c":[]}}"#, #"unsupported a.b\.\[c"#),
        (#"{"a":[1]}"#, #"{"minimum":{"a":1}}"#, "unsupported a"),
        (#"{"a":{}}"#, #"{"add":{"a":[1]}}"#, "unsupported a"),
        (#"{"a":1}"#, #"{"remove":{"a":[1]}}"#, "unsupported a"),
        (#"{"a":[{"b":1}]}"#, #"{"increment":{"a.b":1}}"#, "unsupported a"),
        (#"{"a":{"b":1}}"#, #"{"increment":{"a.b.c":1}}"#, "unsupported a.b"),
        ("[1]", #"{"increment":{"a":1}}"#, "unsupported "), ("7", #"{"increment":{}}"#, "unsupported "),
        // What is wrong whatever the item is.
        ("{}", #"{"increment":{"a":"1"}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a":null}}"#, "invalid_params increment"),
        ("{}", #"{"maximum":{"a":[1]}}"#, "invalid_params maximum"),
        ("{}", #"{"append":{"a":1}}"#, "invalid_params append"), ("{}", #"{"add":[1]}"#, "invalid_params add"),
        ("{}", #"{"remove":{"a":{"b":[]}}}"#, "invalid_params remove"),
        ("{}", #"{"increment":{"a":1,"a":2}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a":1,"\u0061":2}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a":1},"add":{"a":[1]}}"#, "invalid_params add"),
        ("{}", #"{"increment":{"a":1,"a.b":2}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a.b":1},"append":{"a":[2]}}"#, "invalid_params append"),
        ("{}", #"{"increment":{"a.b.c":1,"a.b":2}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a\\b":1}}"#, "invalid_params increment"),
        ("{}", #"{"increment":{"a\\":1}}"#, "invalid_params increment"),
        // A name that begins with another one is another one.
        ("{}", #"{"increment":{"a":1,"ab":2,"a\\.b":3}}"#, #"{"a":1,"ab":2,"a.b":3}"#),
    ])
    func members(item: String, operations: String, result: String) throws {
        #expect(try apply(operations, to: item) == result)
    }

    /// The sum of two numbers.
    @Test(arguments: [
        ("0.1", "0.2", "0.3"), ("1", "1", "2"), ("1.50", "0.5", "2"), ("-1", "1.0", "0"), ("-0", "0", "0"),
        ("-0.0", "-0e5", "0"), ("1e2", "1", "101"), ("1e-2", "1E+1", "10.01"), ("999", "1", "1000"),
        ("1000", "-1", "999"), ("0.001", "-1", "-0.999"), ("-5", "3", "-2"), ("3", "-5", "-2"), ("-5", "-3", "-8"),
        ("9223372036854775807", "1", "9223372036854775808"), ("18446744073709551615", "1e0", "18446744073709551616"),
        ("123456789012345678901234567890", "0.1", "123456789012345678901234567890.1"),
        ("9007199254740993", "2", "9007199254740995"), ("100", "0", "100"), ("0.10", "0", "0.1"), ("1e3", "0", "1000"),
        ("1e21", "1", "1000000000000000000001"), ("5e-1", "5e-1", "1"), ("0", "1e-5", "0.00001"),
        ("00", "1", "corrupt"),
    ])
    func sums(left: String, right: String, sum: String) throws {
        guard sum != "corrupt" else { return }
        #expect(try apply(#"{"increment":{"n":\#(right)}}"#, to: #"{"n":\#(left)}"#) == #"{"n":\#(sum)}"#)
        #expect(try apply(#"{"increment":{"n":\#(left)}}"#, to: #"{"n":\#(right)}"#) == #"{"n":\#(sum)}"#)
    }

    /// Three times a tenth.
    @Test func addsDecimals() throws {
        var item = "{}"
        for _ in 0..<3 { item = try apply(#"{"increment":{"n":0.1}}"#, to: item) }
        #expect(item == #"{"n":0.3}"#)
    }

    /// What `minimum` and `maximum` leave of two numbers: the text of one of them.
    @Test(arguments: [
        ("1", "2", "1", "2"), ("2", "1", "1", "2"), ("-1", "-2", "-2", "-1"), ("1.0", "1", "1.0", "1.0"),
        ("1e2", "100.5", "1e2", "100.5"), ("0", "-0.0", "0", "0"), ("-1", "1", "-1", "1"),
        ("9007199254740993", "9007199254740992", "9007199254740992", "9007199254740993"),
        ("1e-900", "0", "0", "1e-900"),
    ])
    func bounds(stored: String, given: String, lesser: String, greater: String) throws {
        let item = #"{"n":\#(stored)}"#
        #expect(try apply(#"{"minimum":{"n":\#(given)}}"#, to: item) == #"{"n":\#(lesser)}"#)
        #expect(try apply(#"{"maximum":{"n":\#(given)}}"#, to: item) == #"{"n":\#(greater)}"#)
    }

    /// At most 1000 digits, wherever they are; no exponent makes a number long, or takes time.
    @Test func numbersHaveThousandDigits() throws {
        let nines = String(repeating: "9", count: 1000)
        let fraction = "0." + String(repeating: "0", count: 998) + "1"
        for (stored, given, sum) in [
            (nines, "0", nines), ("1e999", "1", "1" + String(repeating: "0", count: 998) + "1"),
            (nines, "-1", String(nines.dropLast()) + "8"),
            (fraction, "0.0", fraction), ("1e-999", "0", fraction), ("0e99999999999999999999", "1", "1"),
            ("1." + String(repeating: "0", count: 5000), "1", "2"),
            ("10" + String(repeating: "0", count: 5000) + "e-5000", "1", "11"), ("-0e-999999999", "0", "0"),
        ] {
            #expect(try apply(#"{"increment":{"n":\#(given)}}"#, to: #"{"n":\#(stored)}"#) == #"{"n":\#(sum)}"#)
        }
        for (stored, given) in [
            (nines, "1"), ("1e1000", "1"), ("1", "1e1000"), ("1e999999999", "1"), ("1", "1e99999999999999999999"),
            ("1e-1000", "1"), ("1", "-1e-999999999"), ("1e999", "0.1"), ("0", "1" + nines), (fraction + "1", "1"),
        ] {
            #expect(try apply(#"{"increment":{"n":\#(given)}}"#, to: #"{"n":\#(stored)}"#) == "unsupported n")
        }
        for operation in ["increment", "minimum", "maximum"] {
            #expect(try apply(#"{"\#(operation)":{"a.b":1e1000}}"#, to: "{}") == "unsupported a.b")
            #expect(try apply(#"{"\#(operation)":{"a":1}}"#, to: #"{"a":1e1000}"#) == "unsupported a")
        }
    }

    @Test(arguments: [
        ("append", "[]", "[]", "[]"), ("append", "[]", "[1, 2]", "[1, 2]"), ("append", "[ 1 ]", "[1]", "[ 1 ,1]"),
        ("append", "[ ]", "[1]", "[ 1]"), ("append", "[1]", "[ ]", "[1 ]"),
        ("append", "[[1]]", "[[1],{}]", "[[1],[1],{}]"),
        ("add", "[]", "[]", "[]"), ("add", "[3,1,1]", "[1,2,2.0,3]", "[3,1,1,2]"),
        ("add", "[1.0]", "[1,10e-1]", "[1.0]"),
        ("add", #"["a","\u0062"]"#, #"["b","\u0061","c"]"#, #"["a","\u0062","c"]"#),
        ("add", "[\"e\u{301}\"]", "[\"\u{E9}\"]", "[\"e\u{301}\",\"\u{E9}\"]"),
        ("add", "[null,true]", "[false,true,null,0]", "[null,true,false,0]"),
        (
            "add", #"[{"a":1,"b":[2]}]"#, #"[{"b":[2.0],"a":1e0},{"b":[2],"a":2},{"a":1,"b":[2],"a":1}]"#,
            #"[{"a":1,"b":[2]},{"b":[2],"a":2}]"#
        ),
        ("add", "[[1,2]]", "[[2,1],[1,2],[[1],2],[1,[2]]]", "[[1,2],[2,1],[[1],2],[1,[2]]]"),
        ("add", "[{}]", #"[[],{},"",{"a":[]},{"":{}}]"#, #"[{},[],"",{"a":[]},{"":{}}]"#),
        (
            "add", "[9223372036854775807]", "[9223372036854775807.0,9223372036854775808]",
            "[9223372036854775807,9223372036854775807.0]"
        ),
        ("remove", "[1,2,1.0,3,10e-1]", "[1,4]", "[2,3]"), ("remove", "[]", "[1]", "[]"),
        ("remove", "[1]", "[]", "[1]"),
        ("remove", #"["a",{"b":[null]},null,"a"]"#, #"["\u0061",{"b":[null]}]"#, "[null]"),
        ("remove", "[ 1 , 2 ]", "[3]", "[1,2]"), ("remove", "[[[[[1]]]],[1]]", "[[1]]", "[[[[[1]]]]]"),
        ("remove", "[true,false,null,0,\"\",[],{}]", "[false,0,[],{}]", "[true,null,\"\"]"),
        ("remove", #"["ab","a","b"]"#, #"["ab"]"#, #"["a","b"]"#),
    ])
    func arrays(operation: String, stored: String, values: String, result: String) throws {
        #expect(
            try apply(#"{"\#(operation)":{"a":\#(values)}}"#, to: #"{"a":\#(stored)}"#) == #"{"a":\#(result)}"#)
    }

    /// An element that nests deeper than the stack is deep equals none, and is kept.
    @Test func deepElementsAreNoElementOfOthers() throws {
        let deep = String(repeating: "[", count: 500_000) + String(repeating: "]", count: 500_000)
        #expect(try apply(#"{"remove":{"a":[[[]],1]}}"#, to: #"{"a":[[[]],\#(deep),1]}"#) == #"{"a":[\#(deep)]}"#)
        #expect(try apply(#"{"add":{"a":[[]]}}"#, to: #"{"a":[\#(deep)]}"#) == #"{"a":[\#(deep),[]]}"#)
    }

    @Test func pathsHaveTheirLimits() throws {
        func increment(_ paths: [String]) -> String {
            #"{"increment":{\#(paths.map { "\"\($0)\":1" }.joined(separator: ","))}}"#
        }
        let path = { (names: Int) in Array(repeating: "a", count: names).joined(separator: ".") }
        #expect(try apply(increment([path(4)]), to: "{}", maximumDepth: 4) == #"{"a":{"a":{"a":{"a":1}}}}"#)
        #expect(try apply(increment([path(5)]), to: "{}", maximumDepth: 4) == "limit_exceeded json_depth")
        let many = (0..<1000).map { "m\($0)" }
        let item = "{" + many.map { "\"\($0)\":1" }.joined(separator: ",") + "}"
        #expect(try apply(increment(many), to: item) == item.replacing(":1", with: ":2"))
        #expect(try apply(increment(many), to: "{}") == item)
        #expect(try apply(increment(many + ["x"]), to: item) == "limit_exceeded query_nodes")
        #expect(try apply(increment([path(1001)]), to: item, maximumDepth: 2000) == "limit_exceeded query_nodes")
    }

    /// Many values and a long array take time that is linear in them: in pairs they would take an hour.
    @Test(.timeLimit(.minutes(20))) func takesLinearTime() throws {
        let values = { (range: Range<Int>) in
            "[" + range.map { "\"value \($0)\",\($0),[\($0)]" }.joined(separator: ",") + "]"
        }
        let (half, whole) = (values(0..<50_000), values(0..<100_000))
        #expect(try apply(#"{"add":{"a":\#(whole)}}"#, to: #"{"a":\#(half)}"#) == #"{"a":\#(whole)}"#)
        #expect(try apply(#"{"remove":{"a":\#(whole)}}"#, to: #"{"a":\#(half)}"#) == #"{"a":[]}"#)
    }
}

extension FieldPatch {
    /// - Parameter operations: an object whose members are the operations.
    static func apply(_ operations: String, to item: String, maximumDepth: Int = 128) throws(CRUDError) -> String {
        let text = Array(operations.utf8)
        var parts: [FieldOperationTexts.Part] = []
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner()
            _ = try scanner.peekKind(text.span)
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text.span, isFirst: &isFirst) {
                let object = try scanner.value(text.span)
                guard let operation = FieldOperation.allCases.first(where: { key.equals($0.name, text.span) }) else {
                    throw JSONSyntaxError(reason: .unexpectedByte, offset: key.start)
                }
                parts.append(FieldOperationTexts.Part(operation, object))
            }
        } catch {
            throw CRUDError(.parseError, "\(error)")
        }
        var patch = try FieldPatch(parts, of: text.span, maximumDepth: maximumDepth)
        return String(decoding: try patch.apply(to: Array(item.utf8).span, text.span), as: UTF8.self)
    }
}
