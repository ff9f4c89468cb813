import CRUDModel
import Testing

/// CQL2's text encoding.
@Suite struct CQL2TextTests {
    private func path(_ text: String) -> PropertyPath { PropertyPath(text: text) ?? PropertyPath(names: ["?"]) }
    private func number(_ text: String) -> Literal { JSONNumber(text: text).map { .number($0) } ?? "?" }

    @Test func everythingIsUnderstood() throws {
        let (a, b, c) = (Filter.isNull(path("a")), Filter.isNull(path("b")), Filter.isNull(path("c")))
        let cases: [(String, Filter)] = [
            ("TRUE", .constant(true)), ("false", .constant(false)),
            ("age >= 18", .comparison(.greaterOrEqual, path("age"), 18)),
            ("age=18", .comparison(.equal, path("age"), 18)), ("a<>'x'", .comparison(.notEqual, path("a"), "x")),
            ("a<1", .comparison(.less, path("a"), 1)), ("a<=-1", .comparison(.lessOrEqual, path("a"), -1)),
            ("a > true", .comparison(.greater, path("a"), true)),
            ("address.city = 'Bonn'", .comparison(.equal, path("address.city"), "Bonn")),
            ("name LIKE 'B%'", .like(path("name"), pattern: "B%")),
            (#"name not like '\%\_\\\\'"#, .not(.like(path("name"), pattern: #"\%\_\\"#))),
            ("age BETWEEN 1 AND 2", .between(path("age"), 1, 2)),
            ("a NOT BETWEEN 'a' AND 'b'", .not(.between(path("a"), "a", "b"))),
            ("a BETWEEN 1 AND 2 AND b IS NULL", .and([.between(path("a"), 1, 2), b])),
            ("a IN ('x', 1, TRUE)", .isIn(path("a"), ["x", 1, true])), ("a NOT IN (1)", .not(.isIn(path("a"), [1]))),
            ("a in ()", .isIn(path("a"), [])), ("a IS NULL", a), ("a IS NOT NULL", .not(a)), ("NOT a IS NULL", .not(a)),
            ("a_contains(tags, ('x', 'y'))", .arrayContains(path("tags"), ["x", "y"])),
            ("A_CONTAINS(tags, ())", .arrayContains(path("tags"), [])),
            // As drafts of the standard had it.
            ("A_CONTAINS(tags, ['x', 1])", .arrayContains(path("tags"), ["x", 1])),
            ("A_CONTAINS(tags, [])", .arrayContains(path("tags"), [])),
            // The standard's example clause7_15.
            (
                "A_CONTAINS(layer:ids, ('layers-ca','layers-us'))",
                .arrayContains(path("layer:ids"), ["layers-ca", "layers-us"])
            ),
            // NOT binds closer than AND, and AND closer than OR.
            ("a is null and b is null and c is null", .and([a, b, c])),
            ("a is null or b is null and c is null", .or([a, .and([b, c])])),
            ("a is null and b is null or c is null", .or([.and([a, b]), c])),
            ("NOT a is null AND b is null", .and([.not(a), b])), ("NOT (a is null AND b is null)", .not(.and([a, b]))),
            ("(a is null or b is null) and c is null", .and([.or([a, b]), c])), ("((a is null))", a),
            ("(a is null and b is null) and c is null", .and([.and([a, b]), c])), ("NOT NOT a is null", .not(.not(a))),
            // White space of any kind.
            (" \t\n\ra\u{A0}=\u{2003}1 ", .comparison(.equal, path("a"), 1)),
            // Quoted properties.
            (#""in" = 1"#, .comparison(.equal, path("in"), 1)), (#""a b" = 1"#, .comparison(.equal, path("a b"), 1)),
            (#""a.b" = 1"#, .comparison(.equal, path("a.b"), 1)),
            (#""a\.b\\" = 1"#, .comparison(.equal, path(#"a\.b\\"#), 1)),
            (#""say ""x""" = 1"#, .comparison(.equal, path(#"say "x""#), 1)),
            (#""" = 1"#, .comparison(.equal, path(""), 1)),
            ("naïve.größe_2:x = 1", .comparison(.equal, path("naïve.größe_2:x"), 1)),
            ("date = '2020-01-01'", .comparison(.equal, path("date"), "2020-01-01")),
            // Strings.
            ("a = ''", .comparison(.equal, path("a"), "")), ("a = 'it''s'", .comparison(.equal, path("a"), "it's")),
            (#"a = 'it\'s'"#, .comparison(.equal, path("a"), "it's")),
            (#"a = 'C:\dir\x'"#, .comparison(.equal, path("a"), #"C:\dir\x"#)),
            (#"a = 'C:\\'"#, .comparison(.equal, path("a"), #"C:\"#)),
            (#"a = '\\\''"#, .comparison(.equal, path("a"), #"\'"#)),
            (#"a = '\\''' "#, .comparison(.equal, path("a"), #"\'"#)),
            ("a = ''''", .comparison(.equal, path("a"), "'")),
            ("a = 'é😀\n'", .comparison(.equal, path("a"), "é😀\n")),
            // Numbers.
            ("a = +5", .comparison(.equal, path("a"), 5)), ("a = 007", .comparison(.equal, path("a"), 7)),
            ("a = .5", .comparison(.equal, path("a"), number("0.5"))), ("a = 5.", .comparison(.equal, path("a"), 5)),
            ("a = -00.50", .comparison(.equal, path("a"), number("-0.50"))),
            ("a = 1E+05", .comparison(.equal, path("a"), number("1e05"))),
            ("a = 1.5e-3", .comparison(.equal, path("a"), number("1.5e-3"))),
            ("a = 18446744073709551616", .comparison(.equal, path("a"), number("18446744073709551616"))),
        ]
        for (text, filter) in cases { #expect(try Filter(cql2Text: text) == filter, "\(text)") }
    }

    /// Invalid filters, the column of each error, and a part of the message.
    @Test(arguments: [
        ("", 1, "empty"), ("  ", 3, "empty"), ("a", 2, "not a condition"), ("a =", 4, "ends"),
        ("a = b", 5, "single quotes: 'b'"),
        (#"a = "b""#, 5, "single quotes: 'b'"), ("a = NULL", 5, "IS NULL"), ("18 <= a", 1, "left"),
        ("'x' = a", 1, "left"),
        ("a == 1", 3, "equal is ="), ("a != 1", 3, "<>"), ("a = 1 b = 2", 7, "AND, OR"), ("a = 1 AND", 10, "ends"),
        ("a = 1)", 6, "AND, OR"), ("(a = 1", 7, ")"), ("()", 2, "condition"), ("a IS 1", 6, "NULL"),
        ("a IS NOT 1", 10, "NULL"),
        ("a NOT 1", 7, "LIKE"), ("a NOT = 1", 7, "LIKE"), ("a LIKE 1", 8, "pattern"),
        (#"a LIKE 'x\y'"#, 8, "backslash"),
        ("a BETWEEN 1", 12, "AND"), ("a BETWEEN 1 OR 2", 13, "AND"), ("a IN 1", 6, "parentheses"),
        ("a IN (1", 8, "comma"),
        ("a IN (1,)", 9, "expected"), ("a IN (NULL)", 7, "IS NULL"), ("f(a)", 1, "no function f"),
        ("a_contains(1, ())", 12, "property"),
        ("a_contains(a)", 13, "comma"), ("a_contains(a, 'x')", 15, "list"), ("a_contains(a, [1)", 17, "]"),
        ("a_contains(a, (1", 17, ")"),
        ("a_contains(a, (1)", 18, ")"), (#""a_contains"(a, (1))"#, 13, "property"), ("a = 'x", 5, "no end"),
        (#"a = 'x\'"#, 5, #"\\'"#),
        (#""a = 1"#, 1, "no end"), (#""a\b" = 1"#, 1, "backslash"), ("a = 1.2.3", 5, "number"), ("a = 1x", 5, "number"),
        ("a = 1e", 5, "exponent"), ("a = -", 5, "number"), ("a = ;", 5, "';'"), ("é = 'é' AND ?", 13, "'?'"),
        ("AND", 1, "condition"),
        ("a AND b", 3, "not a condition"), ("NOT", 4, "ends"), ("a > > 1", 5, "expected"), ("TRUE = a", 6, "AND, OR"),
    ])
    func errorsPointAtTheColumn(text: String, column: Int, word: String) {
        let error = #expect(throws: CRUDError.self) { try Filter(cql2Text: text) }
        #expect(error?.code == .invalidQuery)
        #expect(error?.details.column == column, "\(text): \(error?.message ?? "")")
        #expect(error?.message.contains(word) == true, "\(text): \(error?.message ?? "")")
        #expect(error?.message.hasSuffix("(column \(column))") == true)
    }

    @Test func limits() {
        func text(_ count: Int) -> String { [String](repeating: "a = 1", count: count).joined(separator: " OR ") }
        func list(_ count: Int) -> String { "a IN (\([String](repeating: "1", count: count).joined(separator: ",")))" }
        #expect(throws: Never.self) { try Filter(cql2Text: text(999)) }
        #expect(throws: Never.self) { try Filter(cql2Text: list(10_000)) }
        for (text, limit) in [(text(1000), "filter_nodes"), (list(10_001), "filter_values")] {
            let error = #expect(throws: CRUDError.self) { try Filter(cql2Text: text) }
            #expect(error?.code == .limitExceeded && error?.details.limit == limit)
        }
        let deep = String(repeating: "(", count: 100_000)
        let error = #expect(throws: CRUDError.self) { try Filter(cql2Text: deep) }
        #expect(error?.code == .invalidQuery)
    }

    @Test(arguments: [
        ("a=1 and b like 'x%' or not(c in(1,2))", "a = 1 AND b LIKE 'x%' OR c NOT IN (1, 2)"),
        ("(a=1 or b=2) and (c=3 and d=4)", "(a = 1 OR b = 2) AND (c = 3 AND d = 4)"), ("not a = 1", "NOT (a = 1)"),
        ("not a is null", "a IS NOT NULL"), (#""null" = 'it\'s'"#, #""null" = 'it''s'"#), (#""a" = 1"#, "a = 1"),
        (#""A b" = 1"#, #""A b" = 1"#), ("A_Contains(t,(true))", "A_CONTAINS(t, (TRUE))"),
        (#"a = 'x\\'"#, #"a = 'x\\'"#), (#"a = '\x'"#, #"a = '\x'"#),
    ])
    func printsReadably(text: String, expected: String) throws {
        #expect(try Filter(cql2Text: text).cql2Text == expected)
    }
}
