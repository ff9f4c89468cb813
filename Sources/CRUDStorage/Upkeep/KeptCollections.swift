import Synchronization

/// The collections of a backend that are looked after whether or not anybody uses them.
final class KeptCollections: Sendable {
    private struct State {
        var collections: [BackendCollection] = []
        /// Of these collections: a name has one place in a backend.
        var names: Set<[UInt8]> = []
        var version = 0
    }

    private let state = Mutex(State())

    func replace(_ collections: [BackendCollection]) {
        state.withLock { state in
            state.collections = collections
            state.names = Set(collections.map(\.name))
            state.version += 1
        }
    }

    /// Replaces the collection of a name; nil: it is not looked after any more.
    func replace(_ name: [UInt8], with collection: BackendCollection?) {
        state.withLock { state in
            if state.names.remove(name) != nil { state.collections.removeAll { $0.name == name } }
            guard let collection else { return }
            state.names.insert(name)
            state.collections.append(collection)
            state.version += 1
        }
    }

    /// Adds a collection that somebody has opened, so that it is looked after when its storage is opened again.
    func add(_ collection: BackendCollection) {
        state.withLock { state in
            let isKnown = state.names.insert(collection.name).inserted == false
            if !isKnown { state.collections.append(collection) }
        }
    }

    /// Removes a collection that is not there any more.
    func remove(named name: [UInt8]) {
        state.withLock { state in
            if state.names.remove(name) != nil { state.collections.removeAll { $0.name == name } }
        }
    }

    /// Another one for each list.
    var version: Int { state.withLock { $0.version } }

    var all: [BackendCollection] { state.withLock { $0.collections } }
}
