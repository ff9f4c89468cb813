import CRUDConfiguration
import CRUDModel
import Testing

@Suite struct CollectionRulesTests {
    private let rules: CollectionRules

    init() throws {
        let yaml = #"""
            backends: {main: {plugin: sqlite}}
            collections:
              "*": {backend: main}
              "a*": {backend: main}
              "*a": {backend: main}
              "ab*": {backend: main}
              "a?c": {backend: main}
              "äöü*": {backend: main}
              abc: {backend: main}
              "what\\?": {backend: main}
              "\\**": {backend: main}
              "é": {backend: main}
            """#
        rules = try configuration(yaml).collections
    }

    @Test(arguments: [
        ("abc", "abc"), ("abd", "ab*"), ("acc", "a?c"), ("acd", "a*"), ("ba", "*a"), ("aa", "a*"), ("b", "*"),
        ("abcd", "ab*"), ("what?", #"what\?"#), ("whats", "*"), ("*x", #"\**"#), ("äöüx", "äöü*"), ("é", "é"),
        ("e\u{301}", "*"), ("a😀c", "a?c"),
    ])
    func findsTheRuleOfAName(name: String, expected: String) throws {
        #expect(rules.rule(named: name)?.pattern.text == expected)
    }

    @Test func findsNothingWithoutAMatchingRule() throws {
        let rules = try configuration(minimal + "collections: {a: {backend: main}, 'b*': {backend: main}}").collections
        for name in ["", "A", "aa", "ab"] {
            #expect(rules.rule(named: name)?.pattern.text == nil)
        }
    }

    @Test func findsEveryOneOfManyNames() throws {
        let names = (0..<2000).map { "c\($0)" }
        let entries = names.map { "  \($0): {backend: main, indexes: [\($0)]}\n" }.joined()
        let rules = try configuration("\(minimal)collections:\n\(entries)").collections
        for name in names {
            #expect(rules.rule(named: name)?.indexes == [name])
        }
    }

    @Test func countsLiteralCodePoints() throws {
        #expect(rules.rules.map(\.pattern.literalCodePoints) == [0, 1, 1, 2, 2, 3, 3, 5, 1, 1])
    }

    @Test(arguments: [
        ("*", "", true), ("?", "", false), ("?", "é", true), ("??", "é", false), ("*?*?*", "ab", true),
        ("*?*?*", "a", false), ("a*b*c", "a__b__bc", true), ("a*b*c", "a__c__b", false), ("*ab", "aab", true),
        ("*é?", "éé😀", true), ("**a**", "a", true), (#"\\*"#, #"\x"#, true), (#"\?*"#, "x", false),
    ])
    func matchesByCodePoint(pattern: String, name: String, expected: Bool) throws {
        let yaml = "\(minimal)collections: {'\(pattern)': {backend: main}}"
        let rule = try #require(try configuration(yaml).collections.rules.first)
        let bytes = Array(name.utf8)
        let isMatch = rule.pattern.matches(bytes.span)
        #expect(isMatch == expected)
    }

    @Test func matchesTheWorstPatternInTime() throws {
        let pattern = String(repeating: "*a", count: 127) + "*b"
        let yaml = "\(minimal)collections: {'\(pattern)': {backend: main}}"
        let rules = try configuration(yaml).collections
        let name = String(repeating: "a", count: 128)
        let elapsed = ContinuousClock().measure { #expect(rules.rule(named: name)?.pattern.text == nil) }
        // Backtracking to every "*" would take longer than the universe has been there.
        #expect(elapsed < .seconds(60))
    }
}
