package import CRUDJSON
package import CRUDModel

/// What a daemon answered to one request.
package struct Response: Sendable {
    package enum Outcome: Sendable {
        /// Where the result stands in the frame's text.
        case result(JSONSlice)
        case error(CRUDError)
    }

    /// The id of the request; nil where the daemon could not tell which request it answers.
    package var id: Int?
    package var outcome: Outcome
}

/// Why a frame is no response. A peer that sends such a frame does not speak this protocol.
package struct ResponseFault: Error, CustomStringConvertible {
    package var description: String

    init(_ description: String) {
        self.description = description
    }
}
