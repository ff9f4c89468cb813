import Synchronization

/// Whether the peer of a stream has closed it in both directions; threads that work for that peer read it.
package final class HangUp: Sendable {
    private let state = Atomic(false)

    package internal(set) var hasHappened: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
