import CRUDConfiguration
import CRUDModel
import Glibc
import Testing

@Suite struct AccessPolicyTests {
    // No user of these numbers executes the tests, whom as the daemon's own user everything would be allowed.
    private static let stranger: UInt32 = 54_321

    private func policy(_ rules: String) throws -> AccessPolicy {
        try configuration("\(minimal)access:\n\(rules)\n").access
    }

    private func permissions(
        _ policy: AccessPolicy, _ uid: UInt32, _ groups: [UInt32], _ collection: String
    ) -> Permissions {
        let name = Array(collection.utf8)
        return policy.permissions(uid: uid, groups: groups, collection: name.span)
    }

    @Test func letsEverybodyReadAndWriteWithoutTheSection() throws {
        let policy = try configuration(minimal).access
        #expect(permissions(policy, Self.stranger, [], "x") == [.read, .write])
        #expect(policy.permissions(uid: Self.stranger, groups: []) == [.read, .write])
    }

    @Test(arguments: ["  []", "  - {users: [0], allow: []}", "  - {allow: []}"])
    func letsRootAndTheDaemonDoEverything(rules: String) throws {
        let policy = try policy(rules)
        for uid in [0, geteuid()] {
            #expect(permissions(policy, uid, [], "x") == .all)
            #expect(policy.permissions(uid: uid, groups: []) == .all)
        }
        #expect(permissions(policy, Self.stranger, [0], "x") == [])
    }

    /// Those of the first rule that has some and applies to the peer, whatever its collections.
    @Test func limitsAreThoseOfTheFirstRuleThatHasSome() throws {
        let policy = try policy(
            """
              - {users: [54001], collections: [a], allow: [read]}
              - {groups: [54002], collections: [b], allow: [], limits: {requests_per_second: 7, bytes: 3KiB}}
              - {users: [54001], allow: [read], limits: {}}
              - {allow: [read], limits: {requests_per_second: 9, collections: 0, records: 5}}
            """)
        #expect(policy.limits(uid: 54_001, groups: [54_002]).bytes == 3072)
        #expect(policy.limits(uid: Self.stranger, groups: []).quotas.map(\.name) == ["collections", "records"])
        #expect(policy.limits(uid: Self.stranger, groups: []).collections == 0)
        #expect(policy.hasQuotas)
        #expect(policy.limits(uid: 54_001, groups: [54_002]).requestsPerSecond == 7)
        #expect(policy.limits(uid: 54_001, groups: []).requestsPerSecond == nil)
        #expect(policy.limits(uid: Self.stranger, groups: []).requestsPerSecond == 9)
        for uid in [0, geteuid()] { #expect(policy.limits(uid: uid, groups: [54_002]).requestsPerSecond == nil) }
    }

    @Test(arguments: [
        "{requests_per_second: 0}", "{requests_per_second: many}", "{requests: 7}", "[7]", "{collections: -1}",
        "{bytes: 2}{}", "{records: many}",
    ])
    func refusesOtherLimits(limits: String) throws {
        #expect(throws: (any Error).self) { try policy("  - {allow: [], limits: \(limits)}") }
    }

    struct Question: Sendable {
        let uid: UInt32
        let groups: [UInt32]
        /// Nil: the daemon itself.
        let collection: String?
        let expected: Permissions
    }

    @Test(arguments: [
        Question(uid: 54_001, groups: [], collection: "clients", expected: [.read, .write]),
        Question(uid: 5000, groups: [7, 54_002], collection: "clients", expected: [.read, .write]),
        Question(uid: 5000, groups: [54_001], collection: "clients", expected: [.read]),
        Question(uid: 54_001, groups: [], collection: "orders", expected: [.read]),
        Question(uid: 54_001, groups: [], collection: "private-1", expected: []),
        Question(uid: 54_003, groups: [], collection: "private-1", expected: []),
        Question(uid: 54_003, groups: [], collection: "clients", expected: .all),
        // The first match decides, though a later rule allows more.
        Question(uid: 54_001, groups: [54_003], collection: "clients", expected: [.read, .write]),
        // Rules about collections do not apply to the daemon.
        Question(uid: 54_001, groups: [54_003], collection: nil, expected: .all),
        Question(uid: 54_001, groups: [], collection: nil, expected: []),
        Question(uid: 54_321, groups: [], collection: nil, expected: []),
        Question(uid: 54_321, groups: [54_321], collection: "clients", expected: [.read]),
    ])
    func letsTheFirstMatchingRuleDecide(_ question: Question) throws {
        let policy = try policy(
            """
              - {collections: ["private-*"], allow: []}
              - {users: [54001], groups: [54002], collections: [clients], allow: [read, write]}
              - {users: [54003], groups: [54003], allow: [admin, read, write]}
              - {collections: ["*"], allow: [read]}
            """)
        if let collection = question.collection {
            #expect(permissions(policy, question.uid, question.groups, collection) == question.expected)
        } else {
            #expect(policy.permissions(uid: question.uid, groups: question.groups) == question.expected)
        }
    }
}
