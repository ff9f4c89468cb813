import Glibc

/// Where a request has come from, as the log says it.
struct RequestOrigin: Sendable {
    /// The number of the session.
    let session: Int
    let uid: uid_t
    /// What the client calls itself.
    let client: String
}

extension RequestOrigin: CustomStringConvertible {
    var description: String { "session \(session) of uid \(uid)" }
}
