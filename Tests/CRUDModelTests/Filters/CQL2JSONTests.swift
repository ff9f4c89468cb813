import CRUDModel
import Testing

/// CQL2's JSON encoding.
@Suite struct CQL2JSONTests {
    private func path(_ text: String) -> PropertyPath { PropertyPath(text: text) ?? PropertyPath(names: ["?"]) }

    @Test func everyOperationIsRead() throws {
        let cases: [(String, Filter)] = [
            ("true", .constant(true)), ("false", .constant(false)),
            (#"{"op":"=","args":[{"property":"a"},"x"]}"#, .comparison(.equal, path("a"), "x")),
            (#"{"op":"<>","args":[{"property":"a"},1]}"#, .comparison(.notEqual, path("a"), 1)),
            (#"{"op":"<","args":[{"property":"a.b"},true]}"#, .comparison(.less, path("a.b"), true)),
            (#"{"op":"<=","args":[{"property":"a\\.b"},-1]}"#, .comparison(.lessOrEqual, path(#"a\.b"#), -1)),
            (#"{"op":">","args":[{"property":""},""]}"#, .comparison(.greater, path(""), "")),
            (#"{"op":">=","args":[{"property":"é"},"\u00e9"]}"#, .comparison(.greaterOrEqual, path("é"), "é")),
            (#"{"args":[{"property":"a"},"B%"],"op":"like"}"#, .like(path("a"), pattern: "B%")),
            (#"{"op":"between","args":[{"property":"a"},1,2]}"#, .between(path("a"), 1, 2)),
            (#"{"op":"in","args":[{"property":"a"},[1,"x",false]]}"#, .isIn(path("a"), [1, "x", false])),
            (#"{"op":"in","args":[{"property":"a"},[]]}"#, .isIn(path("a"), [])),
            (#"{"op":"isNull","args":[{"property":"a"}]}"#, .isNull(path("a"))),
            (#"{"op":"a_contains","args":[{"property":"a"},["x"]]}"#, .arrayContains(path("a"), ["x"])),
            (#"{"op":"not","args":[{"op":"isNull","args":[{"property":"a"}]}]}"#, .not(.isNull(path("a")))),
            (#"{"op":"and","args":[true,false]}"#, .and([.constant(true), .constant(false)])),
            (
                #" { "op" : "or" , "args" : [ true , { "op" : "and", "args" : [ true, false, true ] } ] } "#,
                .or([.constant(true), .and([.constant(true), .constant(false), .constant(true)])])
            ),
            // Escapes are decoded everywhere.
            (#"{"\u006fp":"\u003d","args":[{"property":"\u0061"},"\u0078"]}"#, .comparison(.equal, path("a"), "x")),
        ]
        for (text, filter) in cases { #expect(try Filter(cql2JSON: text) == filter, "\(text)") }
    }

    @Test func numbersKeepTheirDigits() throws {
        for digits in ["0", "-0", "18446744073709551616", "0.10", "1e400", "1E+2", "-1.5e-3"] {
            let text = #"{"op":"=","args":[{"property":"a"},\#(digits)]}"#
            #expect(try Filter(cql2JSON: text).cql2JSON == text)
        }
    }

    /// Invalid filters, and the part of each that the error names.
    @Test(arguments: [
        (#"{"op":"=","args":[{"property":"a"}]}"#, nil), (#"{"op":"=","args":[{"property":"a"},1,2]}"#, nil),
        (#"{"op":"==","args":[{"property":"a"},1]}"#, nil), (#"{"op":"s_within","args":[]}"#, nil),
        (#"{"op":"AND","args":[true,true]}"#, nil), (#"{"op":"and","args":[true]}"#, nil),
        (#"{"op":"or","args":[]}"#, nil), (#"{"op":"not","args":[true,true]}"#, nil),
        (#"{"op":"isNull","args":[{"property":"a"},{"property":"b"}]}"#, nil),
        (#"{"op":"like","args":[{"property":"a"}]}"#, nil), (#"{"op":"in","args":[{"property":"a"}]}"#, nil),
        (#"{"op":"between","args":[{"property":"a"},1]}"#, nil),
        (#"{"op":"a_contains","args":[{"property":"a"}]}"#, nil),
        (#"{"op":"="}"#, nil), (#"{"args":[]}"#, nil), ("{}", nil), (#"{"op":"=","args":[],"x":1}"#, nil),
        (#"{"op":1,"args":[]}"#, nil), (#"{"op":"=","args":{}}"#, nil), (#"{"op":"=","op":"=","args":[]}"#, nil),
        (#"{"property":"a","op":"="}"#, nil),
        (#"{"op":"=","args":[1,{"property":"a"}]}"#, "1"),
        (#"{"op":"=","args":[{"property":"a"},{"property":"b"}]}"#, #"{"property":"b"}"#),
        (#"{"op":"=","args":[{"property":"a"},null]}"#, "null"), (#"{"op":"=","args":[{"property":"a"},[1]]}"#, "[1]"),
        (
            #"{"op":"=","args":[{"property":"a"},{"op":"isNull","args":[{"property":"b"}]}]}"#,
            #"{"op":"isNull","args":[{"property":"b"}]}"#
        ),
        (#"{"op":"and","args":[true,{"property":"a"}]}"#, #"{"property":"a"}"#),
        (#"{"op":"and","args":[true,1]}"#, "1"), (#"{"op":"not","args":["x"]}"#, #""x""#),
        (#"{"op":"or","args":[true,{"op":"and","args":[ false ]}]}"#, #"{"op":"and","args":[ false ]}"#),
        (#"{"op":"in","args":[{"property":"a"},[1,null]]}"#, "null"),
        (#"{"op":"in","args":[{"property":"a"},[[1]]]}"#, "[1]"), (#"{"op":"in","args":[{"property":"a"},1]}"#, "1"),
        (#"{"op":"in","args":[{"property":"a"},[{"property":"b"}]]}"#, #"{"property":"b"}"#),
        (#"{"op":"a_contains","args":[["x"],{"property":"a"}]}"#, #"["x"]"#),
        (#"{"op":"like","args":[{"property":"a"},1]}"#, "1"),
        (#"{"op":"like","args":[{"property":"a"},"a\\"]}"#, #""a\\""#),
        (#"{"op":"like","args":[{"property":"a"},"\\a"]}"#, #""\\a""#),
        (#"{"op":"isNull","args":[1]}"#, "1"), (#"{"property":"a"}"#, nil),
        (#"{"op":"isNull","args":[{"property":"a\\b"}]}"#, #"{"property":"a\\b"}"#),
        (#"{"op":"isNull","args":[{"property":1}]}"#, #"{"property":1}"#),
        ("1", nil), ("null", nil), (#""x""#, nil), ("[]", nil), ("[true]", nil),
    ])
    func errorsNameTheInvalidNode(text: String, node: String?) {
        let error = #expect(throws: CRUDError.self) { try Filter(cql2JSON: text) }
        #expect(error?.code == .invalidQuery)
        #expect(error?.details.node == node ?? text)
    }

    @Test(arguments: ["", "{", "tru", #"{"op":"=","args":["#, "true true", #"{"op":"=","args":[01]}"#, "\u{FEFF}true"])
    func invalidJSONIsRejected(text: String) {
        let error = #expect(throws: CRUDError.self) { try Filter(cql2JSON: text) }
        #expect(error?.code == .invalidQuery)
    }

    @Test func limits() throws {
        let leaf = #"{"op":"isNull","args":[{"property":"a"}]}"#
        func conjunction(_ count: Int) -> String {
            #"{"op":"and","args":[\#([String](repeating: leaf, count: count).joined(separator: ","))]}"#
        }
        func nested(_ count: Int) -> String {
            String(repeating: #"{"op":"not","args":["#, count: count) + leaf + String(repeating: "]}", count: count)
        }
        func list(_ count: Int) -> String {
            let values = [String](repeating: "1", count: count).joined(separator: ",")
            return #"{"op":"in","args":[{"property":"a"},[\#(values)]]}"#
        }
        for text in [conjunction(999), nested(999), list(10_000)] { _ = try Filter(cql2JSON: text) }
        let many = #"{"op":"and","args":[\#([String](repeating: "true", count: 1000).joined(separator: ","))]}"#
        for (text, limit, maximum) in [
            (conjunction(1000), "filter_nodes", 1000), (nested(1000), "filter_nodes", 1000),
            (nested(100_000), "filter_nodes", 1000), (many, "filter_nodes", 1000),
            (#"{"op":"or","args":[\#(list(5000)),\#(list(5001))]}"#, "filter_values", 10_000),
            (list(10_001), "filter_values", 10_000),
        ] {
            let error = #expect(throws: CRUDError.self) { try Filter(cql2JSON: text) }
            #expect(error?.code == .limitExceeded)
            #expect(error?.details == .init(limit: limit, maximum: maximum))
        }
    }

    @Test func junctionsOfFewerThanTwoBecomeWhatTheyAmountTo() {
        #expect(Filter.and([]).cql2JSON == "true")
        #expect(Filter.or([]).cql2JSON == "false")
        #expect(Filter.and([.or([.isNull(path("a"))])]).cql2JSON == #"{"op":"isNull","args":[{"property":"a"}]}"#)
    }

    @Test func textIsComparedByCodePoint() {
        #expect(Filter.comparison(.equal, path("a"), "\u{E9}") != .comparison(.equal, path("a"), "e\u{301}"))
        #expect(Filter.isNull(path("\u{E9}")) != .isNull(path("e\u{301}")))
        #expect(Filter.like(path("a"), pattern: "\u{E9}") != .like(path("a"), pattern: "e\u{301}"))
    }
}
