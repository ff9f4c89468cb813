/// What one event loop has measured, or several together.
struct LoopMeasurement: Sendable {
    var requests = RequestCounts()
    /// How many requests wait for changes.
    var followers = 0
    /// What its sessions make it hold.
    var heldBytes = 0
    var receivedBytes: UInt64 = 0
    var sentBytes: UInt64 = 0
    /// How many requests collections have had, by name.
    var collections: [[UInt8]: UInt64] = [:]

    mutating func add(_ other: LoopMeasurement) {
        requests.add(other.requests)
        followers += other.followers
        heldBytes += other.heldBytes
        receivedBytes &+= other.receivedBytes
        sentBytes &+= other.sentBytes
        collections.merge(other.collections) { $0 &+ $1 }
    }
}
