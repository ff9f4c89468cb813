import CRUDModel
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Darwin
#endif

/// Errors of the client's side of the connection.
extension CRUDError {
    static func frameTooLong(_ call: PendingCall, maximum: Int) -> CRUDError {
        CRUDError(
            .limitExceeded, "\(call.method.name) is longer than the \(maximum) bytes that the daemon accepts",
            details: CRUDError.Details(limit: "frame_bytes", maximum: maximum))
    }

    static func outcomeUnknown(_ call: PendingCall, _ what: String, _ cause: any Error) -> CRUDError {
        CRUDError(.outcomeUnknown, "\(call.method.name) \(what); it may or may not have been applied", cause: cause)
    }

    static func timedOut(_ call: PendingCall) -> CRUDError {
        CRUDError(.timedOut, "\(call.method.name) got no reply by its deadline", cause: DeadlineExceeded())
    }

    /// - Parameter maximum: the client's ``CRUDClient/Options/maximumPendingCalls``.
    static func neverAdmitted(_ method: RemoteMethod, maximum: Int) -> CRUDError {
        let others = "\(maximum) other calls of the client (`maximumPendingCalls`) were pending"
        return CRUDError(
            .timedOut, "\(method.name) could not be sent by its deadline: \(others)", cause: DeadlineExceeded())
    }

    static func neverSent(_ call: PendingCall, _ obstacle: CRUDError?) -> CRUDError {
        let reason = obstacle.map { ": \($0.message)" } ?? ""
        return CRUDError(
            .timedOut, "\(call.method.name) could not be sent by its deadline\(reason)", cause: DeadlineExceeded())
    }

    static func notConnected(path: String, _ cause: any Error) -> CRUDError {
        let reason =
            switch cause {
            // The text is copied before another call of strerror can change it.
            case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
            case is DeadlineExceeded: "no reply by the deadline"
            case SocketAddressError.unixDomainSocketPathTooLong: "the path is too long for a socket"
            default: String(describing: cause)
            }
        let message = "cannot connect to the daemon at \(path): \(reason)"
        guard let error = cause as? IOError, error.errnoCode == EACCES else {
            let isAbsent = [ENOENT, ECONNREFUSED].contains((cause as? IOError)?.errnoCode)
            let code = cause is DeadlineExceeded ? CRUDError.Code.timedOut : .unavailable
            return CRUDError(code, message + (isAbsent ? "; is crudd running?" : "")).telling(cause)
        }
        let hint = SocketGroup.name(ofSocketAt: path).map { "; join the group \($0), whose members may" } ?? ""
        return CRUDError(.permissionDenied, message + hint).telling(cause)
    }

    static func connectionLost(path: String, _ cause: (any Error)?) -> CRUDError {
        let message = "the daemon at \(path) closed the connection"
        guard let cause else { return CRUDError(.unavailable, message) }
        // As above.
        let reason =
            (cause as? IOError).map { unsafe String(cString: strerror($0.errnoCode)) } ?? String(describing: cause)
        return CRUDError(.unavailable, "\(message): \(reason)").telling(cause)
    }

    /// This error with its cause, which the message tells.
    private func telling(_ cause: any Error) -> CRUDError {
        var error = self
        error.cause = cause
        error.tellsCause = true
        return error
    }

    static func protocolViolation(path: String, _ violation: String) -> CRUDError {
        CRUDError(.internalError, "the daemon at \(path) violated the protocol: \(violation)")
    }

    static func malformed(_ method: RemoteMethod) -> CRUDError {
        CRUDError(.internalError, "the daemon's reply to \(method.name) lacks a required member")
    }

    static func closed() -> CRUDError {
        CRUDError(.unavailable, "the client is closed", cause: ClientClosed())
    }
}

/// The cause of an error that no later attempt avoids: the application has closed the client.
struct ClientClosed: Error, CustomStringConvertible {
    var description: String { "by the application" }
}
