import CRUDConfiguration
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
    /// What its user may take.
    let limits: UserLimits

    /// - Parameters:
    ///   - user: the name of the user.
    ///   - used: what the user has of a quota, by its name; nil: that has not been measured yet.
    func describe(to description: inout JSONWriter, user: String, used: (String) -> Int?) {
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
        if let rate {
            description.member("requestsPerSecond", rate.maximum)
            description.member("refusedRequests", rate.refusedCount)
        }
        guard !limits.quotas.isEmpty else { return }
        description.key("quotas")
        description.object { quotas in
            for (name, maximum) in limits.quotas {
                quotas.key(name)
                quotas.object { quota in
                    if let used = used(name) { quota.member("used", used) }
                    quota.member("maximum", maximum)
                }
            }
        }
    }
}
