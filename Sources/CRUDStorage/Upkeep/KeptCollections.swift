import Synchronization

/// The collections of a backend that are looked after whether or not anybody uses them.
///
/// What follows the list (``CollectionOpener``) gets what has come since it last asked, so that a collection that comes
/// or goes costs the same however many there are.
final class KeptCollections: Sendable {
    private struct State {
        /// By name: a name has one place in a backend.
        var collections: [[UInt8]: BackendCollection] = [:]
        /// What has come since the list was last taken; nil: all have.
        var added: [BackendCollection]?
        var version = 0
    }

    /// What has become of the list.
    enum Change {
        case all([BackendCollection])
        case added([BackendCollection])
    }

    private let state = Mutex(State())

    func replace(_ collections: [BackendCollection]) {
        state.withLock { state in
            state.collections = Dictionary(collections.map { ($0.name, $0) }) { $1 }
            state.added = nil
            state.version += 1
        }
    }

    /// Replaces the collection of a name; nil: it is not looked after any more.
    func replace(_ name: [UInt8], with collection: BackendCollection?) {
        state.withLock { state in
            state.collections[name] = collection
            guard let collection else { return }
            state.added?.append(collection)
            state.version += 1
        }
    }

    /// Adds a collection that somebody has opened, so that it is looked after when its storage is opened again.
    func add(_ collection: BackendCollection) {
        state.withLock { state in
            if state.collections[collection.name] == nil { state.collections[collection.name] = collection }
        }
    }

    /// Removes a collection that is not there any more.
    func remove(named name: [UInt8]) { state.withLock { $0.collections[name] = nil } }

    func contains(_ collection: BackendCollection) -> Bool {
        state.withLock { $0.collections[collection.name] === collection }
    }

    /// Another one where any has come.
    var version: Int { state.withLock { $0.version } }

    /// Takes what has come since the last time.
    ///
    /// - Parameter isFirst: whether all are to be taken.
    func takeChange(isFirst: Bool) -> Change {
        state.withLock { state in
            let added = state.added
            state.added = []
            guard !isFirst, let added else { return .all(Array(state.collections.values)) }
            return .added(added)
        }
    }
}
