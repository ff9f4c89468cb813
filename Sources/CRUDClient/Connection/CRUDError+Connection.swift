import CRUDModel
import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What goes wrong on the client's side of the wire.
extension CRUDError {
    static func frameTooLong(_ call: Call, maximum: Int) -> CRUDError {
        CRUDError(
            .limitExceeded, "\(call.method.name) is longer than the \(maximum) bytes that the daemon takes",
            details: CRUDError.Details(limit: "frame_bytes", maximum: maximum))
    }

    static func outcomeUnknown(_ call: Call, _ what: String, _ cause: any Error) -> CRUDError {
        CRUDError(.outcomeUnknown, "\(call.method.name) \(what); it may or may not have been applied", cause: cause)
    }

    static func unanswered(_ call: Call) -> CRUDError {
        CRUDError(.unavailable, "\(call.method.name) was not answered by its deadline", cause: DeadlineExceeded())
    }

    static func neverSent(_ call: Call, _ obstacle: CRUDError?) -> CRUDError {
        let reason = obstacle.map { ": \($0.message)" } ?? ""
        return CRUDError(
            .unavailable, "\(call.method.name) could not be sent by its deadline\(reason)", cause: DeadlineExceeded())
    }

    static func notConnected(path: String, _ cause: any Error) -> CRUDError {
        let reason =
            switch cause {
            // What strerror points at is copied before another call of it can change that.
            case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
            case is DeadlineExceeded: "no answer by the deadline"
            case SocketAddressError.unixDomainSocketPathTooLong: "the path is too long for a socket"
            default: String(describing: cause)
            }
        return CRUDError(.unavailable, "no daemon answers at \(path): \(reason)", cause: cause)
    }

    static func connectionLost(path: String, _ cause: (any Error)?) -> CRUDError {
        CRUDError(.unavailable, "the daemon at \(path) closed the connection", cause: cause)
    }

    static func protocolBroken(path: String, _ fault: String) -> CRUDError {
        CRUDError(.internalError, "the daemon at \(path) broke the protocol: \(fault)")
    }

    static func malformed(_ method: RemoteMethod) -> CRUDError {
        CRUDError(.internalError, "the daemon's answer to \(method.name) lacks what it must have")
    }

    static func closed() -> CRUDError {
        CRUDError(.unavailable, "the client is closed")
    }
}
