import CRUDModel
import NIOCore

/// A request and the task that waits for its reply.
struct PendingCall: Sendable {
    let id: Int
    let method: RemoteMethod
    /// The request with its header.
    let frame: [UInt8]
    let deadline: NIODeadline
    /// Whether the daemon may hold back its reply, and is told when no task waits for it any more.
    var isHeldBack = false
    let continuation: CheckedContinuation<[UInt8], any Error>

    func fail(_ error: CRUDError) {
        continuation.resume(throwing: error)
    }

    /// Ends the call as cancelled: nothing was applied.
    func cancel() {
        continuation.resume(throwing: CancellationError())
    }
}
