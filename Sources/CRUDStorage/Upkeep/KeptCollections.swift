import Synchronization

/// The collections of a backend that are looked after whether or not anybody uses them.
final class KeptCollections: Sendable {
    private struct State {
        var collections: [BackendCollection] = []
        var version = 0
    }

    private let state = Mutex(State())

    func replace(_ collections: [BackendCollection]) {
        state.withLock { state in
            state.collections = collections
            state.version += 1
        }
    }

    /// Another one for each list.
    var version: Int { state.withLock { $0.version } }

    var all: [BackendCollection] { state.withLock { $0.collections } }
}
