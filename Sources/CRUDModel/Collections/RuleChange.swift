/// Which collections two sets of rules treat differently: the names and globs whose rules are not the same in both.
package struct RuleChange: Sendable {
    /// The names whose own rules differ.
    package let names: Set<[UInt8]>
    /// The globs whose rules differ, or all of them where their order differs, which decides between two that match.
    package let globs: [CollectionPattern]

    package init(from former: CollectionRules, to next: CollectionRules) {
        var old = former.byName
        var names: Set<[UInt8]> = []
        for (name, rule) in next.byName where old.removeValue(forKey: name)?.isAlike(rule) != true {
            names.insert(name)
        }
        self.names = names.union(old.keys)
        let (oldGlobs, newGlobs) = (former.byGlob, next.byGlob)
        let isAlike = oldGlobs.elementsEqual(newGlobs) { $0.pattern == $1.pattern && $0.isAlike($1) }
        globs = isAlike ? [] : (oldGlobs + newGlobs).map(\.pattern)
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

    fileprivate var byGlob: [CollectionRule] { rules.filter(\.pattern.isGlob) }
}

extension CollectionRule {
    /// Whether it says the same, wherever it stands in the file.
    fileprivate func isAlike(_ other: CollectionRule) -> Bool {
        backend == other.backend && format == other.format && indexes == other.indexes && moves == other.moves
            && changes == other.changes
    }
}
