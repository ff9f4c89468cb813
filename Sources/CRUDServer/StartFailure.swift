import CRUDCore
import Glibc

/// Why a daemon does not start: lines for the administrator and an exit status of sysexits.h.
package struct StartFailure: Error {
    package enum Status: Int32, Sendable {
        /// EX_UNAVAILABLE: another daemon is there already, or a plugin that is to be checked gives no answer.
        case unavailable = 69
        /// EX_OSERR: the system does not give what is needed.
        case system = 71
        /// EX_CONFIG: the configuration has to be mended first.
        case configuration = 78
    }

    package let status: Status
    package let lines: [String]

    init(_ status: Status, _ lines: String...) {
        self.status = status
        self.lines = lines
    }

    /// A call of the system that has failed for `what`: a fault of the configuration where another value would do.
    init(_ fault: SystemFault, of what: String) {
        let configured: Set = [
            EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EOPNOTSUPP, EPERM,
        ]
        let status: Status =
            fault.code == EADDRINUSE ? .unavailable : configured.contains(fault.code) ? .configuration : .system
        self.init(status, "\(what): \(fault)")
    }

    init(_ status: Status, lines: [String]) {
        self.status = status
        self.lines = lines
    }
}
