import CRUDConfiguration
import CRUDModel
import CRUDStorage
import Glibc

/// Why a daemon does not start: lines for the administrator and an exit status of sysexits.h.
package struct StartFailure: Error {
    package enum Status: Int32, Sendable {
        /// EX_UNAVAILABLE: another daemon is running already, or a plugin that is to be checked does not reply.
        case unavailable = 69
        /// EX_OSERR: the system does not give what is needed.
        case system = 71
        /// EX_CONFIG: the configuration has to be corrected first.
        case configuration = 78
    }

    package let status: Status
    package let lines: [String]

    init(_ status: Status, _ lines: String...) {
        self.init(status, lines: lines)
    }

    init(_ status: Status, lines: [String]) {
        self.status = status
        self.lines = lines
    }

    /// A system call that has failed for the value of `key`: an error of the configuration, with its place in the file,
    /// where another value would do.
    init(_ error: SystemError, of key: String, at position: SourcePosition, in configuration: Configuration) {
        let message = "\(key): \(error)"
        if error.code == EADDRINUSE {
            self.init(.unavailable, message)
        } else if SystemErrorKind(error.code) == .system {
            self.init(.system, message)
        } else {
            self.init(.configuration, configuration.diagnostic(at: position, message).description)
        }
    }
}
