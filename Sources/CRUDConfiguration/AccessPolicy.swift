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
}

/// One rule of `access`.
package struct AccessRule: Sendable, Equatable {
    /// User ids; nil where the rule does not say.
    package let users: [UInt32]?
    /// Group ids; nil where the rule does not say.
    package let groups: [UInt32]?
    /// Nil: all of them, and the daemon itself.
    package let collections: [CollectionPattern]?
    /// What a peer may do for whom this rule decides; nothing else.
    package let allow: Permissions

    /// Whether the rule speaks of this peer: its user is listed, or one of its groups is, or neither list is given.
    func concerns(uid: UInt32, groups: [UInt32]) -> Bool {
        if users == nil && self.groups == nil { return true }
        return users?.contains(uid) == true || self.groups?.contains(where: groups.contains) == true
    }

    /// Whether the rule speaks of this collection.
    func covers(_ collection: Span<UInt8>) -> Bool {
        guard let collections else { return true }
        for pattern in collections where pattern.matches(collection) { return true }
        return false
    }
}

/// Who may do what: the section `access`, or what holds without one.
///
/// Root and the daemon's own user may do everything. Without the section everybody else may read and write; with it
/// the first rule that matches peer and collection decides, and what none matches is denied.
///
/// The answers depend on nothing but the arguments, so that a session may keep them until the next reload.
package struct AccessPolicy: Sendable {
    /// In the order of the file; nil where it has no such section.
    package let rules: [AccessRule]?
    /// The effective user id of the daemon.
    let daemonUID: UInt32

    /// What a peer may do with a collection.
    ///
    /// - Parameters:
    ///   - groups: all of the peer's, its primary one included.
    ///   - collection: the name, as UTF-8.
    package func permissions(uid: UInt32, groups: [UInt32], collection: Span<UInt8>) -> Permissions {
        if let permissions = permissionsWithoutRules(uid: uid) { return permissions }
        for rule in rules ?? [] where rule.concerns(uid: uid, groups: groups) && rule.covers(collection) {
            return rule.allow
        }
        return []
    }

    /// What a peer may do where no collection is concerned: with ``Permissions/admin``, manage the daemon. Rules that
    /// list `collections` do not speak of that.
    package func permissions(uid: UInt32, groups: [UInt32]) -> Permissions {
        if let permissions = permissionsWithoutRules(uid: uid) { return permissions }
        for rule in rules ?? [] where rule.concerns(uid: uid, groups: groups) && rule.collections == nil {
            return rule.allow
        }
        return []
    }

    /// Whether a peer may do all of `needed` with a collection; parameters as of ``permissions(uid:groups:collection:)``.
    package func allows(_ needed: Permissions, uid: UInt32, groups: [UInt32], collection: Span<UInt8>) -> Bool {
        permissions(uid: uid, groups: groups, collection: collection).isSuperset(of: needed)
    }

    /// What holds whatever the rules say; nil where they decide.
    private func permissionsWithoutRules(uid: UInt32) -> Permissions? {
        if uid == 0 || uid == daemonUID { return .all }
        return rules == nil ? [.read, .write] : nil
    }
}
