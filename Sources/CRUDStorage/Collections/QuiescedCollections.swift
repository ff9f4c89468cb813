package import CRUDModel

/// Which collections have to wait: while a reload exchanges backends or lets collections live elsewhere, or while one
/// is dropped.
package struct QuiescedCollections: Sendable {
    private enum Extent {
        /// - Parameters:
        ///   - backends: those that are going to be closed.
        ///   - rules: those that are going to be in force.
        case changed(backends: [Backend], rules: CollectionRules)
        case one([UInt8])
    }

    private let extent: Extent

    /// - Parameters:
    ///   - backends: those that are going to be closed.
    ///   - rules: those that are going to be in force.
    package init(backends: [Backend], rules: CollectionRules) {
        extent = .changed(backends: backends, rules: rules)
    }

    /// The collection of that name alone.
    package init(collection name: [UInt8]) {
        extent = .one(name)
    }

    func covers(_ collection: Collection) -> Bool {
        switch extent {
        case .one(let name): return collection.name == name
        case .changed(let backends, let rules):
            if backends.contains(where: { $0 === collection.backend }) { return true }
            let name = collection.name
            guard let rule = rules.rule(for: name.span) else { return true }
            return !rule.stores(like: collection.rule)
        }
    }
}
