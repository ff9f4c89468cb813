import CRUDModel

/// Who may do more, and who less, by one access policy than by another.
///
/// Peers that the rules do not tell apart are one **subject**: everybody, each user and each group that a rule names,
/// and, since the first rule that matches decides, the members of two of them. Collections that no rule tells apart are
/// one **class**. What holds for everybody is not repeated for each user, nor what holds for a user for its groups.
package struct AccessComparison {
    /// A line for each subject that may do more, such as `user shop gains write on collection clients`.
    package private(set) var gains: [String] = []
    /// A line for each subject that may do less.
    package private(set) var losses: [String] = []

    /// More accounts are not combined: their pairs would be too many to look at.
    private static let maximumCombined = 64
    /// More collections are not looked at one by one; the rules' own patterns always are.
    private static let maximumCollections = 10_000

    /// - Parameter collections: the names of those that exist.
    package init(from old: AccessPolicy, to new: AccessPolicy, collections: some Sequence<[UInt8]>) {
        guard old.rules != new.rules else { return }
        let classes = CollectionClass.classes(
            of: [old, new], collections: Array(collections.prefix(Self.maximumCollections)))
        let subjects = Subject.all(in: [old, new], combinedUpTo: Self.maximumCombined)
        var names = AccountNames()
        var stranger = UInt32.max - 1
        let named = Set(subjects.compactMap(\.user) + [old.daemonUID, new.daemonUID])
        while named.contains(stranger) { stranger -= 1 }
        func lines(_ verb: String, from old: AccessPolicy, to new: AccessPolicy) -> [String] {
            Self.differences(subjects) { subject in
                zip(
                    subject.permissions(by: new, classes, stranger: stranger),
                    subject.permissions(by: old, classes, stranger: stranger)
                ).map { $0.subtracting($1) }
            }.map { "\($0.description(&names)) \(verb) \(Self.describe($1, classes))" }
        }
        gains = lines("gains", from: old, to: new)
        losses = lines("loses", from: new, to: old)
    }

    /// What is different for each subject, unless it is so for the subjects to which its members belong anyway.
    private static func differences(
        _ subjects: [Subject], _ difference: (Subject) -> [Permissions]
    ) -> [(Subject, [Permissions])] {
        var known: [Subject: [Permissions]] = [:]
        return subjects.compactMap { subject in
            var own = difference(subject)
            known[subject] = own
            for part in subject.parts {
                for (index, permissions) in (known[part] ?? []).enumerated() { own[index].subtract(permissions) }
            }
            return own.allSatisfy(\.isEmpty) ? nil : (subject, own)
        }
    }

    /// - Parameter difference: for the daemon itself, and for each class.
    private static func describe(_ difference: [Permissions], _ classes: [CollectionClass]) -> String {
        let ofCollections = difference.dropFirst()
        var parts: [String] = []
        if let first = ofCollections.first, !first.isEmpty, ofCollections.allSatisfy({ $0 == first }) {
            parts.append("\(first.list) on all collections")
        } else {
            var seen: [Permissions] = []
            for permissions in ofCollections where !permissions.isEmpty && !seen.contains(permissions) {
                seen.append(permissions)
                let concerned = zip(ofCollections, classes).filter { $0.0 == permissions }.map(\.1)
                parts.append("\(permissions.list) on \(CollectionClass.list(concerned))")
            }
        }
        if difference[0].contains(.admin) { parts.append("admin of the daemon") }
        return parts.joined(separator: ", ")
    }
}

/// Peers that no rule tells apart: a user, or whoever is in all of these groups. Of neither: whom no rule names.
private struct Subject: Hashable {
    var user: UInt32?
    var groups: [UInt32] = []

    static func all(in policies: [AccessPolicy], combinedUpTo maximum: Int) -> [Subject] {
        let rules = policies.flatMap { $0.rules ?? [] }
        let users = Set(rules.flatMap { $0.users ?? [] }).sorted()
        let groups = Set(rules.flatMap { $0.groups ?? [] }).sorted()
        var subjects = [Subject()] + users.map { Subject(user: $0) } + groups.map { Subject(groups: [$0]) }
        guard users.count + groups.count <= maximum else { return subjects }
        for (index, group) in groups.enumerated() {
            subjects += users.map { Subject(user: $0, groups: [group]) }
            subjects += groups[..<index].map { Subject(groups: [$0, group]) }
        }
        return subjects
    }

    /// The subjects to which its members belong anyway.
    var parts: [Subject] {
        var parts: [Subject] = user == nil && groups.isEmpty ? [] : [Subject()]
        if (user == nil ? 0 : 1) + groups.count > 1 {
            if let user { parts.append(Subject(user: user)) }
            parts += groups.map { Subject(groups: [$0]) }
        }
        return parts
    }

    /// What it may do with the daemon itself, and with each class of collections.
    ///
    /// - Parameter stranger: a user whom no rule names.
    func permissions(by policy: AccessPolicy, _ classes: [CollectionClass], stranger: UInt32) -> [Permissions] {
        let uid = user ?? stranger
        return [policy.permissions(uid: uid, groups: groups)]
            + classes.map { policy.permissions(uid: uid, groups: groups, collection: $0.example.span) }
    }

    func description(_ names: inout AccountNames) -> String {
        let groups = groups.map { names.group($0) }.joined(separator: " and ")
        guard let user else { return groups.isEmpty ? "everybody" : groups }
        return groups.isEmpty ? names.user(user) : "\(names.user(user)) in \(groups)"
    }
}

/// Collections that no rule tells apart.
private struct CollectionClass {
    /// The name of one of them, or of one that could be.
    let example: [UInt8]
    /// The patterns of rules of which it is an example; empty for those that no pattern is about.
    private var patterns: [String] = []
    private var names: [String] = []

    /// How many collections a line names.
    private static let maximumNamed = 10

    static func classes(of policies: [AccessPolicy], collections: [[UInt8]]) -> [CollectionClass] {
        let rules = policies.flatMap { $0.rules ?? [] }
        let patterns = Set(rules.flatMap { $0.collections ?? [] }.map(\.text)).sorted()
        var classes: [CollectionClass] = []
        var indexes: [[Bool]: Int] = [:]
        func index(of name: [UInt8]) -> Int {
            let key = rules.map { $0.covers(name.span) }
            if let index = indexes[key] { return index }
            classes.append(CollectionClass(example: name))
            indexes[key] = classes.count - 1
            return classes.count - 1
        }
        for pattern in patterns { classes[index(of: example(of: pattern))].patterns.append(pattern) }
        // A name that nobody has stands for those that no pattern is about.
        _ = index(of: Array("\u{FFFD}".utf8))
        for name in collections {
            let index = index(of: name)
            classes[index].names.append(String(decoding: name, as: UTF8.self))
        }
        return classes
    }

    /// A name that a pattern matches, and few others do.
    private static func example(of pattern: String) -> [UInt8] {
        var name = ""
        var isEscaped = false
        for scalar in pattern.unicodeScalars {
            if !isEscaped, scalar == "\\" {
                isEscaped = true
                continue
            }
            name.unicodeScalars.append(!isEscaped && (scalar == "*" || scalar == "?") ? "\u{FFFD}" : scalar)
            isEscaped = false
        }
        return Array(name.utf8)
    }

    /// The classes in words.
    static func list(_ classes: [CollectionClass]) -> String {
        let isOfOthers = classes.contains { $0.patterns.isEmpty && $0.names.isEmpty }
        let names = classes.flatMap { $0.patterns.isEmpty ? $0.names : $0.patterns }
        var words = names.prefix(maximumNamed).map { quoted($0.utf8) }
        if names.count > words.count { words.append("\(names.count - words.count) more") }
        if isOfOthers { words.append(names.isEmpty ? "collections without a rule of their own" : "others") }
        return (names.isEmpty ? "" : names.count == 1 && !isOfOthers ? "collection " : "collections ")
            + words.joined(separator: ", ")
    }
}

/// The names of users and groups for people, each looked up once.
private struct AccountNames {
    private var users: [UInt32: String] = [:]
    private var groups: [UInt32: String] = [:]

    mutating func user(_ uid: UInt32) -> String {
        let name = users[uid] ?? Accounts.name(ofUser: uid) ?? ""
        users[uid] = name
        return name.isEmpty ? "user \(uid)" : "user \(name) (\(uid))"
    }

    mutating func group(_ gid: UInt32) -> String {
        let name = groups[gid] ?? Accounts.name(ofGroup: gid) ?? ""
        groups[gid] = name
        return name.isEmpty ? "group \(gid)" : "group \(name) (\(gid))"
    }
}
