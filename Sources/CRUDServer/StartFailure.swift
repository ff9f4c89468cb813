/// Why a daemon does not start: lines for the administrator and an exit status of sysexits.h.
package struct StartFailure: Error {
    package enum Status: Int32, Sendable {
        /// EX_UNAVAILABLE: another daemon is there already.
        case occupied = 69
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

    init(_ status: Status, lines: [String]) {
        self.status = status
        self.lines = lines
    }
}
