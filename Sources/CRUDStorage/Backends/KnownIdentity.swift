import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// Which storage a backend has. One that is opened again, as one in a child is after that was lost, must be the same,
/// and so must one in which there are collections: another one, or a new one in the place of files that are gone, would
/// be served as if its records were the collections'.
final class KnownIdentity: Sendable {
    private struct State {
        var expected: ExpectedStorage
        var opened: StorageIdentity??
    }

    private let state: Mutex<State>

    /// - Parameter expected: what the first opening has to find.
    init(expected: ExpectedStorage) {
        state = Mutex(State(expected: expected))
    }

    /// What the next opening has to find.
    var expected: ExpectedStorage { state.withLock { $0.expected } }

    /// What has been opened, which may have no identity; nil: nothing yet.
    var opened: StorageIdentity?? { state.withLock { $0.opened } }

    /// Lets the next opening make a storage, if any would do.
    func allowNewStorage() {
        state.withLock { if $0.expected == .any { $0.expected = .mayBeNew } }
    }

    /// Notes what has been opened.
    ///
    /// - Throws: ``PluginFailure`` with `CRUDD_NOT_FOUND` where it is not what was expected.
    func note(_ opened: StorageIdentity?) throws(PluginFailure) {
        let isExpected = state.withLock { state in
            if case .one(let identity) = state.expected, identity != opened { return false }
            state.expected = opened.map { .one($0) } ?? .mayBeNew
            state.opened = .some(opened)
            return true
        }
        if isExpected { return }
        throw PluginFailure(
            status: CRUDD_NOT_FOUND,
            message: opened == nil ? "there is a storage without an identity" : "there is another storage")
    }
}
