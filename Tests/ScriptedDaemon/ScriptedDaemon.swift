import CRUDTestSupport
import Foundation
import Synchronization

/// A peer that a test makes behave as no real daemon can be made to on demand: it loses answers, answers out of order,
/// breaks the protocol, dies and comes back.
///
/// The test hands in a script, which runs on a thread of its own and may block: it accepts connections, reads requests and
/// answers them in plain order. Nothing in it blocks for ever, so that a test that goes wrong ends.
package final class ScriptedDaemon<Value: Sendable>: Sendable {
    /// Where it listens.
    package let path: String

    private enum State {
        case running
        case awaited(CheckedContinuation<Value, any Error>)
        case ended(Result<Value, any Error>)
    }

    private let directory: TemporaryDirectory
    private let state = Mutex(State.running)

    package init(_ script: @escaping @Sendable (ScriptedListener) throws -> Value) throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/daemon.sock"
        let listener = try ScriptedListener(path: path)
        // The thread is the only one to touch the listener from here on.
        nonisolated(unsafe) let handedOver = listener
        Thread { [self] in end(Result { try script(handedOver) }) }.start()
    }

    /// Waits for the end of the script and hands on what it returned or threw.
    package func finish() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let result: Result<Value, any Error>? = state.withLock { state in
                if case .ended(let result) = state { return result }
                state = .awaited(continuation)
                return nil
            }
            if let result { continuation.resume(with: result) }
        }
    }

    private func end(_ result: Result<Value, any Error>) {
        let awaiting: CheckedContinuation<Value, any Error>? = state.withLock { state in
            defer { state = .ended(result) }
            guard case .awaited(let continuation) = state else { return nil }
            return continuation
        }
        awaiting?.resume(with: result)
    }
}
