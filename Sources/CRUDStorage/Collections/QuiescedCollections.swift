package import CRUDModel

/// Which collections have to wait: while a reload exchanges backends or lets collections live elsewhere, or while one
/// is dropped.
package enum QuiescedCollections: Sendable {
    /// Those of backends that are going to be closed, and those that the rules that are going to be in force put
    /// elsewhere.
    case changed(backends: [Backend], rules: CollectionRules)
    /// The collection of that name alone.
    case one([UInt8])

    /// The backends all of whose collections it covers.
    var backends: Set<ObjectIdentifier> {
        switch self {
        case .one: []
        case .changed(let backends, _): Set(backends.map { ObjectIdentifier($0) })
        }
    }

    func covers(_ collection: Collection) -> Bool {
        switch self {
        case .one(let name): return collection.name == name
        case .changed(let backends, let rules):
            if backends.contains(where: { $0 === collection.backend }) { return true }
            let name = collection.name
            guard let rule = rules.rule(for: name.span) else { return true }
            return !rule.stores(like: collection.rule)
        }
    }
}
