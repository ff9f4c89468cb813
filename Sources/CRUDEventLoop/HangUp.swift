import Synchronization

/// Whether nobody reads what is written to a stream: what other threads ask that work for its peer.
package final class HangUp: Sendable {
    private let state = Atomic(false)

    package internal(set) var hasHappened: Bool {
        get { state.load(ordering: .relaxed) }
        set { state.store(newValue, ordering: .relaxed) }
    }
}
