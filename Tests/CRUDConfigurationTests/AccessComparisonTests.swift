import CRUDConfiguration
import Testing

/// Who gains and who loses what when access rules change. The accounts have numbers that no system has names for.
@Suite struct AccessComparisonTests {
    struct Case: Sendable {
        /// A list of rules; nil: there is no section `access`.
        var old: String?
        var new: String?
        var gains: [String] = []
        var losses: [String] = []
    }

    private static let cases = [
        Case(old: "[{users: [70001], allow: [read]}]", new: "[{users: [70001], allow: [read]}]"),
        Case(
            old: "[{users: [70001], allow: [read]}]", new: nil,
            gains: ["everybody gains read and write on all collections"]),
        Case(
            old: nil, new: "[{users: [70001], allow: [read, admin]}]",
            gains: ["user 70001 gains admin on all collections, admin of the daemon"],
            losses: ["everybody loses read and write on all collections"]),
        Case(
            old: "[{users: [70001], collections: [a], allow: [read]}]",
            new: "[{users: [70001], collections: [a, 'b*'], allow: [read, write]}]",
            gains: [#"user 70001 gains write on collection "a", read and write on collection "b*""#]),
        Case(
            old: "[{groups: [70002], allow: [read]}]", new: "[{groups: [70002, 70003], allow: [read]}]",
            gains: ["group 70003 gains read on all collections"]),
        Case(
            old: "[{allow: [read]}, {users: [70001], allow: [write]}]", new: "[{allow: [read, write]}]",
            gains: ["everybody gains write on all collections"]),
        // A rule that denies is what has kept them from the next one.
        Case(
            old: "[{groups: [70002], allow: []}, {users: [70001], allow: [read]}]",
            new: "[{users: [70001], allow: [read]}]",
            gains: ["user 70001 in group 70002 gains read on all collections"]),
        Case(
            old: "[{groups: [70002], allow: []}, {groups: [70003], allow: [read]}]",
            new: "[{groups: [70003], allow: [read]}]",
            gains: ["group 70002 and group 70003 gains read on all collections"]),
        // The names of collections tell that two patterns have something in common.
        Case(
            old: "[{collections: ['*-log'], allow: []}, {collections: ['shop-*'], allow: [read]}]",
            new: "[{collections: ['shop-*'], allow: [read]}]",
            gains: [#"everybody gains read on collection "shop-log""#]),
        Case(
            old: "[{collections: [secret], allow: []}, {allow: [read]}]",
            new: "[{collections: [secret], allow: []}, {allow: [read, write]}]",
            gains: [#"everybody gains write on collection "shop-log""#]),
        // Of root and the daemon's own user nothing changes.
        Case(old: "[{users: [0], allow: []}]", new: "[{users: [0], allow: [read]}]"),
    ]

    @Test(arguments: Self.cases)
    func namesWhoGainsAndWhoLosesWhat(one: Case) throws {
        let comparison = AccessComparison(
            from: try policy(one.old), to: try policy(one.new), collections: [Array("shop-log".utf8)])
        #expect(comparison.gains == one.gains)
        #expect(comparison.losses == one.losses)
    }

    @Test func manyCollectionsAreCounted() throws {
        let names = (0..<50).map { "c\($0)" }
        let old = try policy("[{collections: [\(names.joined(separator: ", "))], allow: [read]}]")
        let new = try policy("[{collections: [\(names.joined(separator: ", "))], allow: [read, write]}]")
        let gains = AccessComparison(from: old, to: new, collections: []).gains
        #expect(gains.count == 1)
        #expect(gains.first?.hasSuffix(", 40 more") == true, "\(gains)")
    }

    private func policy(_ rules: String?) throws -> AccessPolicy {
        let yaml = """
            state_directory: /var/lib/crudd
            backends: {main: {plugin: sqlite}}
            collections: {"*": {backend: main}}
            \(rules.map { "access: \($0)" } ?? "")
            """
        return try Configuration(yaml: Array(yaml.utf8), file: "crudd.yaml", environment: [:]).access
    }
}
