/// Which collections two sets of rules treat differently: the names and globs whose rules are not the same in both.
package struct RuleChange: Sendable {
    /// The names whose own rules differ.
    package let names: Set<[UInt8]>
    /// The globs whose rules differ, or all of them where the order of those that both have differs, which decides
    /// between two that match.
    package let globs: [CollectionPattern]

    package init(from former: CollectionRules, to next: CollectionRules) {
        var old = former.byName
        var names: Set<[UInt8]> = []
        for (name, rule) in next.byName where old.removeValue(forKey: name)?.isAlike(rule) != true {
            names.insert(name)
        }
        self.names = names.union(old.keys)
        globs = Self.changedGlobs(from: former.globs, to: next.globs)
    }

    private static func changedGlobs(
        from former: [CollectionRule], to next: [CollectionRule]
    ) -> [CollectionPattern] {
        let old = Dictionary(former.map { ($0.pattern.text, $0) }) { first, _ in first }
        let new = Dictionary(next.map { ($0.pattern.text, $0) }) { first, _ in first }
        let keptFormer = former.filter { new[$0.pattern.text] != nil }.map(\.pattern.text)
        let keptNext = next.filter { old[$0.pattern.text] != nil }.map(\.pattern.text)
        guard keptFormer == keptNext else { return (former + next).map(\.pattern) }
        let changed = former.filter { new[$0.pattern.text]?.isAlike($0) != true }
        return (changed + next.filter { old[$0.pattern.text] == nil }).map(\.pattern)
    }

    package var isEmpty: Bool { names.isEmpty && globs.isEmpty }

    /// Whether a pattern is among those whose rules differ, or may have had the names that are.
    package func concerns(_ pattern: CollectionPattern) -> Bool {
        pattern.isGlob
            ? !globs.isEmpty || names.contains { pattern.matches($0.span) } : names.contains(pattern.literal)
    }

    package func covers(_ name: [UInt8]) -> Bool {
        names.contains(name) || globs.contains { $0.matches(name.span) }
    }
}

extension CollectionRules {
    fileprivate var byName: [[UInt8]: CollectionRule] {
        let named = rules.lazy.filter { !$0.pattern.isGlob }.map { ($0.pattern.literal, $0) }
        return Dictionary(named) { first, _ in first }
    }

    fileprivate var globs: [CollectionRule] { rules.filter(\.pattern.isGlob) }
}

extension CollectionRule {
    /// Whether it says the same, wherever it stands in the file.
    fileprivate func isAlike(_ other: CollectionRule) -> Bool {
        backend == other.backend && format == other.format && indexes == other.indexes && moves == other.moves
            && changes == other.changes
    }
}
