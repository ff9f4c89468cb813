import CRUDTestSupport
import Foundation
import Synchronization

/// A test double for failures that cannot be made with a real daemon: it loses replies, sends them out of order,
/// violates the protocol, dies and restarts.
///
/// Its script runs on a thread of its own and may block: it accepts connections, reads requests and sends replies.
/// Every wait in it has a deadline, so that a failing test ends.
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
        // Only the new thread uses the listener from here on.
        nonisolated(unsafe) let transferred = listener
        Thread { [self] in end(Result { try script(transferred) }) }.start()
    }

    /// Waits for the end of the script and returns or throws its result.
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
