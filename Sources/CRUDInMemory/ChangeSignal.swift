import Synchronization

/// Wakes the followers of a database when something has changed.
final class ChangeSignal: Sendable {
    private struct State {
        /// The sequence number of the last change.
        var sequence: UInt64 = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
    }

    private let state = Mutex(State())

    /// Wakes everybody who waits for a change beyond an earlier one than `sequence`.
    func send(_ sequence: UInt64) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard sequence > state.sequence else { return [] }
            state.sequence = sequence
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when a change with a greater number than `sequence` has happened, or the task is cancelled.
    func wait(beyond sequence: UInt64) async {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // If the task was cancelled before, the handler has found no waiter.
                    if state.sequence > sequence || Task.isCancelled { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }
}
