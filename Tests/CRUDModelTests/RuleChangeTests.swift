import CRUDModel
import Testing

/// Which collections two sets of rules treat differently.
@Suite struct RuleChangeTests {
    private static func rules(_ rules: [(String, String)]) throws -> CollectionRules {
        CollectionRules(
            try rules.map { rule in
                CollectionRule(
                    pattern: try CollectionPattern(Array(rule.0.utf8)), backend: rule.1, format: .json, indexes: [],
                    position: .start)
            })
    }

    private static func change(
        _ former: [(String, String)], _ next: [(String, String)]
    ) throws -> RuleChange {
        RuleChange(from: try rules(former), to: try rules(next))
    }

    private static func name(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func namesThatDiffer() throws {
        let change = try Self.change(
            [("same", "main"), ("moved", "main"), ("gone", "main"), ("a*", "main")],
            [("a*", "main"), ("new", "main"), ("moved", "other"), ("same", "main")])
        #expect(change.names == Set(["moved", "gone", "new"].map(Self.name)))
        #expect(change.globs.isEmpty && !change.isEmpty)
        #expect(!change.covers(Self.name("same")) && change.covers(Self.name("gone")))
        #expect(!change.covers(Self.name("ab")))
    }

    @Test func nothingDiffers() throws {
        let rules = [("a", "main"), ("b*", "main"), ("c*", "other")]
        #expect(try Self.change(rules, rules).isEmpty)
    }

    /// The first of two globs counts.
    @Test func globsThatDiffer() throws {
        let change = try Self.change([("a*", "main"), ("*b", "main")], [("*b", "main"), ("a*", "main")])
        #expect(change.covers(Self.name("ax")) && change.covers(Self.name("xb")) && !change.covers(Self.name("x")))
        #expect(try Self.change([("a*", "main")], [("a*", "other")]).covers(Self.name("ax")))
        #expect(try Self.change([("a*", "main")], []).covers(Self.name("ax")))
        #expect(try Self.change([("a*", "main"), ("*", "main")], [("*", "main")]).globs.map(\.text) == ["a*"])
    }

    /// Names that only other globs match are none of it.
    @Test func oneGlobOfMany() throws {
        let (first, last) = (("*", "main"), ("b*", "main"))
        for (former, next) in [
            ([("a*", "main")], [("a*", "other")]), ([], [("a*", "main")]), ([("a*", "main")], []),
        ] {
            let change = try Self.change([first] + former + [last], [first] + next + [last])
            #expect(change.covers(Self.name("ax")) && !change.covers(Self.name("bx")) && !change.covers(Self.name("x")))
        }
    }
}
