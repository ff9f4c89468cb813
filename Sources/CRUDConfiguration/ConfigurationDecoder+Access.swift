import CRUDModel

extension ConfigurationDecoder {
    private enum AccessKey: String, CaseIterable {
        case users, groups, collections, allow, limits
    }

    private enum UserLimitsKey: String, CaseIterable {
        case requestsPerSecond = "requests_per_second"
        case collections, records, bytes
    }

    private static let requestsPerSecond = 1...10_000_000
    private static let collections = 0...1_000_000
    private static let records = 0...1_000_000_000_000
    private static let bytes = 0...1 << 50

    /// The rules. An empty list is valid: only root and the daemon's own user may do anything.
    mutating func accessRules(_ node: YAMLNode) -> [AccessRule] {
        guard let elements = elements(node, "a list of access rules") else { return [] }
        return elements.compactMap { element -> AccessRule? in
            guard let fields = fields(element, AccessKey.self) else { return nil }
            let users = fields[.users].flatMap { accounts($0, "user", lookUp: Accounts.user) }
            let groups = fields[.groups].flatMap { accounts($0, "group", lookUp: Accounts.group) }
            let collections = fields[.collections].flatMap { patterns($0) }
            let allow = required(.allow, in: fields, of: "an access rule").map { permissions($0) }
            return AccessRule(
                users: users, groups: groups, collections: collections, allow: allow ?? [],
                limits: fields[.limits].map { userLimits($0) })
        }
    }

    private mutating func userLimits(_ node: YAMLNode) -> UserLimits {
        guard let fields = fields(node, UserLimitsKey.self) else { return UserLimits() }
        return UserLimits(
            requestsPerSecond: quantity(fields[.requestsPerSecond], .count, in: Self.requestsPerSecond),
            collections: quantity(fields[.collections], .count, in: Self.collections),
            records: quantity(fields[.records], .count, in: Self.records),
            bytes: quantity(fields[.bytes], .size, in: Self.bytes))
    }

    private mutating func accounts(
        _ node: YAMLNode, _ kind: String, lookUp: (String) -> Accounts.LookupResult
    ) -> [UInt32]? {
        guard let elements = restriction(node, "\(kind)s") else { return nil }
        return elements.compactMap { account($0, kind, lookUp: lookUp)?.id }
    }

    private mutating func patterns(_ node: YAMLNode) -> [CollectionPattern]? {
        guard let elements = restriction(node, "collections") else { return nil }
        return elements.compactMap { element in
            guard let text = scalar(element, "a collection's name or a glob", parse: { $0 }) else { return nil }
            return pattern(text, at: element.position)
        }
    }

    /// A list that restricts a rule. An empty one is an error: it would match nothing, while a missing list matches
    /// everything, which is easily confused.
    private mutating func restriction(_ node: YAMLNode, _ what: String) -> [YAMLNode]? {
        guard let elements = elements(node, "a list of \(what)") else { return nil }
        if elements.isEmpty { report(node.position, "an empty list matches no \(what); leave the key out for all") }
        return elements
    }

    private mutating func permissions(_ node: YAMLNode) -> Permissions {
        guard let elements = elements(node, "a list of read, write and admin") else { return [] }
        var permissions: Permissions = []
        for element in elements {
            guard let word = scalar(element, "read, write or admin", parse: { $0.isEmpty ? nil : $0 }) else { continue }
            if let known = Permissions.names.first(where: { word.elementsEqual($0.name.utf8) }) {
                permissions.insert(known.permission)
            } else {
                report(element.position, unknown("permission", word, known: Permissions.names.map(\.name)))
            }
        }
        return permissions
    }
}
