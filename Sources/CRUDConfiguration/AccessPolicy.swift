package import CRUDModel

/// What a peer may do with a collection, or with the daemon.
package struct Permissions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let read = Permissions(rawValue: 1)
    package static let write = Permissions(rawValue: 2)
    package static let admin = Permissions(rawValue: 4)
    package static let all: Permissions = [.read, .write, .admin]

    /// Each by its name in the file.
    static let names: [(name: String, permission: Permissions)] = [
        ("read", .read), ("write", .write), ("admin", .admin),
    ]

    /// The names.
    package var words: [String] { Self.names.filter { contains($0.permission) }.map(\.name) }

    /// The names, as in "read and write".
    package var list: String { words.joined(separator: " and ") }
}

/// What each user that a rule applies to may take.
package struct UserLimits: Sendable, Equatable {
    /// Requests per second, over all connections; nil: any number.
    package var requestsPerSecond: Int?
    /// Collections that it owns; nil: any number.
    package var collections: Int?
    /// Records in the collections that it owns; nil: any number.
    package var records: Int?
    /// Bytes of the ids and items of those; nil: any number.
    package var bytes: Int?

    package init(
        requestsPerSecond: Int? = nil, collections: Int? = nil, records: Int? = nil, bytes: Int? = nil
    ) {
        self.requestsPerSecond = requestsPerSecond
        self.collections = collections
        self.records = records
        self.bytes = bytes
    }

    /// Those of storage, by their names in the file.
    package var quotas: [(name: String, maximum: Int)] {
        [("collections", collections), ("records", records), ("bytes", bytes)].compactMap { name, maximum in
            maximum.map { (name, $0) }
        }
    }
}

/// One rule of `access`.
package struct AccessRule: Sendable, Equatable {
    /// User ids; nil where the rule does not say.
    package let users: [UInt32]?
    /// Group ids; nil where the rule does not say.
    package let groups: [UInt32]?
    /// Nil: all collections, and the daemon itself.
    package let collections: [CollectionPattern]?
    /// What the peers that this rule applies to may do.
    package let allow: Permissions
    /// What each user that it applies to may take; nil: the rule does not say.
    package let limits: UserLimits?

    /// Whether the rule applies to this peer: its user or one of its groups is listed, or neither list is given.
    func applies(uid: UInt32, groups: [UInt32]) -> Bool {
        if users == nil && self.groups == nil { return true }
        return users?.contains(uid) == true || self.groups?.contains(where: groups.contains) == true
    }

    /// Whether the rule applies to this collection.
    func covers(_ collection: Span<UInt8>) -> Bool {
        guard let collections else { return true }
        for pattern in collections where pattern.matches(collection) { return true }
        return false
    }
}

/// Who may do what: the section `access`, or the rules that hold without one.
///
/// Root and the daemon's own user may do everything. Without the section everybody else may read and write; with it
/// the first rule that matches peer and collection decides, and what no rule matches is denied.
///
/// Results depend on the arguments only, so that a session may cache them until the next reload.
package struct AccessPolicy: Sendable {
    /// In the order of the file; nil where it has no such section.
    package let rules: [AccessRule]?
    /// The daemon's effective user id.
    let daemonUID: UInt32

    /// What a peer may do with a collection.
    ///
    /// - Parameters:
    ///   - groups: all of the peer's, its primary one included.
    ///   - collection: the name, as UTF-8.
    package func permissions(uid: UInt32, groups: [UInt32], collection: Span<UInt8>) -> Permissions {
        if let permissions = permissionsWithoutRules(uid: uid) { return permissions }
        for rule in rules ?? [] where rule.applies(uid: uid, groups: groups) && rule.covers(collection) {
            return rule.allow
        }
        return []
    }

    /// What a peer may do apart from collections: with ``Permissions/admin``, manage the daemon. Rules that list
    /// `collections` do not apply.
    package func permissions(uid: UInt32, groups: [UInt32]) -> Permissions {
        if let permissions = permissionsWithoutRules(uid: uid) { return permissions }
        for rule in rules ?? [] where rule.applies(uid: uid, groups: groups) && rule.collections == nil {
            return rule.allow
        }
        return []
    }

    /// What the rules that apply to a peer allow it, in their order: of two that match a collection the first decides.
    /// Rules that allow nothing are left out, lest they tell which collections there are.
    package func allowances(
        uid: UInt32, groups: [UInt32]
    ) -> [(collections: [CollectionPattern]?, allow: Permissions)] {
        if let permissions = permissionsWithoutRules(uid: uid) { return [(nil, permissions)] }
        return (rules ?? []).filter { $0.applies(uid: uid, groups: groups) && !$0.allow.isEmpty }
            .map { ($0.collections, $0.allow) }
    }

    /// What a peer's user may take, whatever it asks for: as the first rule with limits says that applies to the peer.
    package func limits(uid: UInt32, groups: [UInt32]) -> UserLimits {
        if isExempt(uid: uid) { return UserLimits() }
        return (rules ?? []).lazy.filter { $0.applies(uid: uid, groups: groups) }.compactMap(\.limits).first
            ?? UserLimits()
    }

    /// Whether a user has no limits, whatever the rules say.
    package func isExempt(uid: UInt32) -> Bool { uid == 0 || uid == daemonUID }

    /// Whether any rule limits what users store.
    package var hasQuotas: Bool { (rules ?? []).contains { $0.limits?.quotas.isEmpty == false } }

    /// The permissions of peers that no rule applies to; nil where the rules decide.
    private func permissionsWithoutRules(uid: UInt32) -> Permissions? {
        if isExempt(uid: uid) { return .all }
        return rules == nil ? [.read, .write] : nil
    }
}
