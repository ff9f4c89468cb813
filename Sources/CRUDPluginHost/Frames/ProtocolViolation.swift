import CRUDJSON

/// How a frame breaks the child protocol: one line for the administrator.
package struct ProtocolViolation: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }

    init(_ error: JSONSyntaxError) {
        description = "byte \(error.offset) of a head is not valid JSON: \(error.reason.rawValue)"
    }
}
