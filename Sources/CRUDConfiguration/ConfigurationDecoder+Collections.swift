import CRUDModel

extension ConfigurationDecoder {
    private enum CollectionKey: String, CaseIterable {
        case backend, format, indexes, move, changes
    }

    private enum ChangesKey: String, CaseIterable {
        case retention
    }

    /// - Parameter backends: the section `backends`, whose keys a rule may refer to.
    mutating func collections(_ node: YAMLNode?, backends: YAMLNode?) -> CollectionRules {
        guard let node, let entries = entries(node, "a mapping of names or globs to collections") else {
            return CollectionRules([])
        }
        var backendNames: [String]?
        if case .mapping(let backends)? = backends?.content, !backends.isEmpty {
            backendNames = backends.map { String(decoding: $0.key, as: UTF8.self) }
        }
        let known = backendNames.map { Set($0.map { Array($0.utf8) }) }
        let rules = entries.compactMap { entry -> CollectionRule? in
            let pattern = self.pattern(entry.key, at: entry.keyPosition)
            let what = "collection \(quoted(entry.key))"
            guard let fields = self.fields(entry.value, CollectionKey.self) else { return nil }
            let backend = required(.backend, in: fields, of: what).flatMap { node -> String? in
                guard let name = text(node, "the name of a backend") else { return nil }
                if let known, !known.contains(Array(name.utf8)) {
                    report(node.position, unknown("backend", Array(name.utf8), known: backendNames ?? []))
                }
                return name
            }
            let format = fields[.format].map { choice($0, "format") ?? .json } ?? CollectionRule.Format.json
            let indexes = fields[.indexes].map { self.indexes($0) } ?? []
            let moves = fields[.move].flatMap { boolean($0) } ?? false
            let changes = fields[.changes].flatMap { self.changes($0) }
            guard let pattern, let backend else { return nil }
            return CollectionRule(
                pattern: pattern, backend: backend, format: format, indexes: indexes, position: entry.keyPosition,
                moves: moves, changes: changes)
        }
        return CollectionRules(rules)
    }

    /// What is to be remembered of changes; nil: nothing.
    private mutating func changes(_ node: YAMLNode) -> CollectionRule.Changes? {
        var changes = CollectionRule.Changes(position: node.position)
        guard case .mapping = node.content else {
            return boolean(node, "true, false or a mapping (retention)") == true ? changes : nil
        }
        guard let fields = fields(node, ChangesKey.self) else { return nil }
        if let time = quantity(fields[.retention], .duration, in: LimitDefinitions.anyDuration) {
            changes.retention = .microseconds(time)
        }
        return changes
    }

    private mutating func indexes(_ node: YAMLNode) -> [String] {
        guard let elements = elements(node, "a list of property paths") else { return [] }
        var seen: Set<[UInt8]> = []
        return elements.compactMap { element in
            guard
                let path = scalar(element, #"a property path such as address.city ("\." for a dot)"#, parse: Self.path)
            else { return nil }
            guard seen.insert(path).inserted else {
                report(element.position, "duplicate index \(quoted(path))")
                return nil
            }
            return String(decoding: path, as: UTF8.self)
        }
    }

    /// The text of a property path, if it is valid and no name in it is empty.
    private static func path(_ text: [UInt8]) -> [UInt8]? {
        guard let path = PropertyPath(utf8: text), !path.names.contains("") else { return nil }
        return text
    }
}
