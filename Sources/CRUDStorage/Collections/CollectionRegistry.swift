import CRUDModel
import Synchronization

/// The collections of one backend: one object for each name and format, which event loops, keepers and copies share.
///
/// An object is there as long as somebody uses it: the storage keeps those that are open, the backend those that are to
/// be maintained, each event loop those in its table. A name that a client has asked for in vain leaves nothing behind.
final class CollectionRegistry: Sendable {
    /// An object: Swift 6.3.1 reads a weak reference in a struct from the wrong address where a dictionary lacks the
    /// key.
    private final class Entry: Sendable {
        weak let collection: BackendCollection?
        let identity: ObjectIdentifier

        init(_ collection: BackendCollection) {
            self.collection = collection
            identity = ObjectIdentifier(collection)
        }
    }

    private struct State {
        var entries: [BackendCollection.Key: Entry] = [:]
        var rules: CollectionRules?
        /// How many collections have been looked at for changes of rules.
        var visits = 0

        func collections(named name: [UInt8]) -> [BackendCollection] {
            CollectionRule.Format.allCases.compactMap { format in
                entries[BackendCollection.Key(name: name, format: format)]?.collection
            }
        }
    }

    private let state = Mutex(State())

    var visits: Int { state.withLock { $0.visits } }

    /// The collection of that name in that format.
    func collection(_ name: [UInt8], _ format: CollectionRule.Format) -> BackendCollection {
        let key = BackendCollection.Key(name: name, format: format)
        return state.withLock { state in
            if let known = state.entries[key]?.collection { return known }
            let layout = state.rules?.rule(for: name.span).map(CollectionLayout.init) ?? CollectionLayout()
            let collection = BackendCollection(name: name, format: format, layout: layout, registry: self)
            state.entries[key] = Entry(collection)
            return collection
        }
    }

    /// Follows the rules that are in force: collections that exist get the layouts that these say. One that no rule
    /// maps any more stays as it is.
    func follow(_ rules: CollectionRules) {
        // They are released when the lock is not held any more: the last reference may be among them.
        let known = state.withLock { state in
            let change = state.rules.map { RuleChange(from: $0, to: rules) }
            state.rules = rules
            let known: [BackendCollection]
            if let change, change.globs.isEmpty {
                known = change.names.flatMap(state.collections(named:))
            } else {
                let concerned = change.map { change in state.entries.filter { change.covers($0.key.name) } }
                known = (concerned ?? state.entries).values.compactMap(\.collection)
            }
            state.visits += known.count
            return known
        }
        for collection in known {
            let name = collection.name
            if let rule = rules.rule(for: name.span) { collection.layout = CollectionLayout(rule) }
        }
    }

    /// Has the collections of a name, or all of them, be admitted again before they are written.
    func endAdmission(of name: [UInt8]? = nil) {
        let known = state.withLock { state in
            guard let name else { return state.entries.values.compactMap(\.collection) }
            return state.collections(named: name)
        }
        for collection in known { collection.isAdmitted = false }
    }

    /// Forgets an object that ends. There may be a new one of its key.
    func forget(_ key: BackendCollection.Key, _ identity: ObjectIdentifier) {
        state.withLock { state in
            if state.entries[key]?.identity == identity { state.entries[key] = nil }
        }
    }

    /// How many objects there are.
    var count: Int { state.withLock { $0.entries.count } }
}
