package import CRUDModel
package import CRUDQuery
import Synchronization

/// The indexes of one open collection, and how far each has been built. Any thread may ask.
package final class IndexSet: Sendable {
    package let paths: [PropertyPath]

    private struct State {
        /// The number of the first index that cannot serve yet; those before it can.
        var readyCount = 0
        /// Records that the build in progress has looked at, and how many there are.
        var indexed = 0
        var total = 0
        /// Why the plugin does not have the first of them yet; nil: it has.
        var reason: String?
        /// Counts how often what the indexes hold has been thrown away.
        var generation = 0
    }

    private let state = Mutex(State())

    init(_ paths: [PropertyPath]) {
        self.paths = paths
    }

    /// Those that can serve a query.
    package var usable: [QueryIndex] {
        let count = state.withLock { $0.readyCount }
        return paths.prefix(count).enumerated().map { QueryIndex(path: $1, number: $0) }
    }

    /// How far a build has got.
    package struct Progress: Sendable {
        package var property: String
        package var indexed: Int
        package var total: Int
        /// Why the storage does not have the index yet, in the plugin's words.
        package var reason: String?
    }

    /// The indexes that are being built.
    package var progress: [Progress] {
        let state = state.withLock { $0 }
        return paths.dropFirst(state.readyCount).map {
            Progress(
                property: $0.text, indexed: state.indexed, total: max(state.total, state.indexed), reason: state.reason)
        }
    }

    /// Changes when what has been found by these indexes so far says nothing of what comes: a search that has begun in
    /// another generation cannot continue.
    var generation: Int { state.withLock { $0.generation } }

    /// All keys are made again; none of the indexes serves meanwhile.
    func beginRebuild() {
        state.withLock { $0 = State(generation: $0.generation + 1) }
    }

    /// The collection has been opened with other indexes, so that the numbers mean something else, or closed.
    func replace() { beginRebuild() }

    /// Sets how many records there are, and how many of them have their keys, for the progress.
    func set(total: Int, indexed: Int) {
        state.withLock { state in
            state.total = total
            state.indexed = indexed
        }
    }

    /// The plugin does not have the next one yet.
    func awaitStorage(because reason: String) { state.withLock { $0.reason = reason } }

    func advance(by records: Int) {
        state.withLock { state in
            state.indexed += records
            state.reason = nil
        }
    }

    /// The indexes before `count` are complete.
    func become(ready count: Int) {
        state.withLock { state in
            state.readyCount = count
            state.reason = nil
        }
    }
}
