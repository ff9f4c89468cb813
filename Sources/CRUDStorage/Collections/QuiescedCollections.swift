package import CRUDModel

/// Which collections have to wait: while a reload exchanges backends or lets collections live elsewhere, or while one
/// is dropped or switched.
package enum QuiescedCollections: Sendable {
    /// Those of backends that are going to be closed, those that other rules are going to store in another way, and
    /// those of these names.
    case changed(backends: [Backend], from: CollectionRules, to: CollectionRules, names: Set<[UInt8]>)
    /// The collection of that name alone.
    case one([UInt8])

    /// The backends all of whose collections it covers.
    var backends: Set<ObjectIdentifier> {
        switch self {
        case .one: []
        case .changed(let backends, _, _, _): Set(backends.map { ObjectIdentifier($0) })
        }
    }

    /// The names of all collections that it can cover; nil: only a look at each tells which those are.
    var names: Set<[UInt8]>? {
        switch self {
        case .one(let name): return [name]
        case .changed(let backends, let former, let rules, let names):
            let change = RuleChange(from: former, to: rules)
            return backends.isEmpty && change.globs.isEmpty ? names.union(change.names) : nil
        }
    }

    /// Those, of all collections, that it may cover.
    func candidates(of all: [Collection]) -> [Collection] {
        guard case .changed(let backends, let former, let rules, let names) = self, backends.isEmpty else { return all }
        let change = RuleChange(from: former, to: rules)
        return all.filter { change.covers($0.name) || names.contains($0.name) }
    }

    func covers(_ collection: Collection) -> Bool {
        let name = collection.name
        switch self {
        case .one(let quiesced): return name == quiesced
        case .changed(let backends, let former, let rules, let names):
            if names.contains(name) || backends.contains(where: { $0 === collection.backend }) { return true }
            guard let old = former.rule(for: name.span), let new = rules.rule(for: name.span) else { return true }
            return !new.stores(like: old)
        }
    }
}
