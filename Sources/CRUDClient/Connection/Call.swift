import CRUDModel
import NIOCore

/// A request and the task that waits for its answer.
struct Call: Sendable {
    let id: Int
    let method: RemoteMethod
    /// The request with its header. Empty once it was sent, unless it may be sent again.
    var frame: [UInt8]
    let deadline: NIODeadline
    let continuation: CheckedContinuation<[UInt8], any Error>

    func fail(_ error: CRUDError) {
        continuation.resume(throwing: error)
    }

    /// Tells the caller that its cancellation came in time.
    func cancel() {
        continuation.resume(throwing: CancellationError())
    }
}
