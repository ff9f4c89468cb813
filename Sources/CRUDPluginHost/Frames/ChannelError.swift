import Glibc

/// Why nothing was sent or received on a channel of the child protocol.
package enum ChannelError: Error, Equatable {
    /// The other side has closed its end.
    case closed
    /// The time that a call may take is over.
    case timedOut
    /// What was received breaks the protocol.
    case violation(String)
    /// A system call failed, with this errno.
    case system(CInt)

    init(_ violation: ProtocolViolation) {
        self = .violation(violation.description)
    }

    init(errno code: CInt) {
        switch code {
        case EAGAIN: self = .timedOut
        case EPIPE, ECONNRESET: self = .closed
        default: self = .system(code)
        }
    }
}
