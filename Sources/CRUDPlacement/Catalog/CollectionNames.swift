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
        countByPattern = self.names.count
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

    /// Whether further collections may come to be.
    ///
    /// - Returns: `limit_exceeded` where they must not.
    func refusal(of names: [[UInt8]]) -> CRUDError? {
        let count = names.count { !isNamedByRule($0) }
        guard count > 0, countByPattern > maximumByPattern - count else { return nil }
        return CRUDError(
            .limitExceeded,
            "limit `collections` reached: \(maximumByPattern) collections exist that only a pattern names; drop one, "
                + "name it, or raise the limit",
            details: .init(limit: "collections", maximum: maximumByPattern))
    }

    /// A collection has come, gone or moved.
    mutating func set(_ name: [UInt8], exists: Bool) {
        guard names.set(name, exists: exists), !isNamedByRule(name) else { return }
        countByPattern += exists ? 1 : -1
    }
}
