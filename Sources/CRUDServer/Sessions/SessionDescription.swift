import CRUDJSON
import Glibc

/// What an administrator sees of a session.
struct SessionDescription: Sendable {
    let number: Int
    let uid: uid_t
    let client: String
    /// Milliseconds since 1970-01-01 UTC.
    let connectedAt: Int64
    let inflight: Int
    /// Requests that wait for changes, which are not in flight.
    let followers: Int
    let requests: UInt64
    let receivedBytes: UInt64
    let sentBytes: UInt64
    let heldBytes: Int
    /// How many requests per second its user may make; nil: any number.
    let rate: RequestRate?

    func describe(to description: inout JSONWriter, user: String) {
        description.member("id", number)
        description.member("uid", uid)
        description.member("user", user)
        description.member("client", client)
        description.member("connectedAt", connectedAt)
        description.member("inflight", inflight)
        description.member("followers", followers)
        description.member("requests", requests)
        description.member("receivedBytes", receivedBytes)
        description.member("sentBytes", sentBytes)
        description.member("heldBytes", heldBytes)
        guard let rate else { return }
        description.member("requestsPerSecond", rate.maximum)
        description.member("refusedRequests", rate.refusedCount)
    }
}
