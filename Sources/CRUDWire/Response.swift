package import CRUDJSON
package import CRUDModel

/// The daemon's reply to one request.
package struct Response: Sendable {
    package enum Outcome: Sendable {
        /// The position of the result in the frame's text.
        case result(JSONSlice)
        case error(CRUDError)
    }

    /// The id of the request; nil where the daemon could not determine it.
    package var id: Int?
    package var outcome: Outcome
}

/// Why a frame is not a response. A peer that sends such a frame does not speak this protocol.
package struct ProtocolViolation: Error, CustomStringConvertible {
    package var description: String

    init(_ description: String) {
        self.description = description
    }
}
