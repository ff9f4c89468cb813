package import CRUDModel

/// Which collections have to wait while a reload exchanges backends or lets collections live elsewhere.
package struct QuiescedCollections: Sendable {
    private let backends: [Backend]
    private let rules: CollectionRules

    /// - Parameters:
    ///   - backends: those that are going to be closed.
    ///   - rules: those that are going to be in force.
    package init(backends: [Backend], rules: CollectionRules) {
        self.backends = backends
        self.rules = rules
    }

    /// Whether nothing may be asked of the backend any more.
    package func covers(_ backend: Backend) -> Bool { backends.contains { $0 === backend } }

    func covers(_ collection: Collection) -> Bool {
        if covers(collection.backend) { return true }
        let name = collection.name
        guard let rule = rules.rule(for: name.span) else { return true }
        return !rule.stores(like: collection.rule)
    }
}
