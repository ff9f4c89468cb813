import CRUDModel

/// The names of all collections that there are, in the order of their bytes, and how many there are by globs alone.
struct CollectionNames {
    private(set) var names: Catalog.Names
    private var rules = CollectionRules([])
    private var maximumByPattern = Int.max
    /// How many of them no rule names.
    private var countByPattern = 0

    /// - Parameter names: in any order.
    init(_ names: some Sequence<[UInt8]> = []) {
        self.names = Catalog.Names(names.sorted { $0.lexicographicallyPrecedes($1) })
        countByPattern = self.names.sorted.count
    }

    private func isNamedByRule(_ name: [UInt8]) -> Bool { rules.rule(for: name.span)?.pattern.isGlob == false }

    mutating func follow(_ rules: CollectionRules, maximumByPattern: Int) {
        let former = self.rules
        self.rules = rules
        self.maximumByPattern = maximumByPattern
        for name in RuleChange(from: former, to: rules).names where names.contains(name) {
            let wasNamed = former.rule(for: name.span)?.pattern.isGlob == false
            countByPattern += (wasNamed ? 1 : 0) - (isNamedByRule(name) ? 1 : 0)
        }
    }

    /// Whether another collection may come to be.
    ///
    /// - Returns: `limit_exceeded` where it must not.
    func refusal(of name: [UInt8]) -> CRUDError? {
        guard countByPattern >= maximumByPattern, !isNamedByRule(name) else { return nil }
        return CRUDError(
            .limitExceeded,
            "limit `collections` reached: \(maximumByPattern) collections exist that only a pattern names; drop one, "
                + "name it, or raise the limit",
            details: .init(limit: "collections", maximum: maximumByPattern))
    }

    /// - Parameter hasMoved: whether it is in another place than before, or in none.
    mutating func set(_ name: [UInt8], exists: Bool, hasMoved: Bool) {
        if hasMoved { names.version += 1 }
        guard names.set(name, exists: exists), !isNamedByRule(name) else { return }
        countByPattern += exists ? 1 : -1
    }
}

extension Catalog {
    package struct Names: Sendable {
        /// Another one where any has come, gone or moved.
        package fileprivate(set) var version: UInt64 = 0
        package private(set) var sorted: [[UInt8]] = []

        fileprivate func contains(_ name: [UInt8]) -> Bool { search(for: name).isKnown }

        /// - Returns: where it is, or would have to be.
        private func search(for name: [UInt8]) -> (index: Int, isKnown: Bool) {
            var (low, high) = (0, sorted.count)
            while low < high {
                let middle = (low + high) / 2
                if sorted[middle].lexicographicallyPrecedes(name) { low = middle + 1 } else { high = middle }
            }
            return (low, low < sorted.count && sorted[low] == name)
        }

        /// - Returns: whether that is a change.
        fileprivate mutating func set(_ name: [UInt8], exists: Bool) -> Bool {
            let (index, isKnown) = search(for: name)
            guard isKnown != exists else { return false }
            if exists { sorted.insert(name, at: index) } else { sorted.remove(at: index) }
            return true
        }

        fileprivate init(_ sorted: [[UInt8]]) { self.sorted = sorted }
    }
}
