import CRUDTestSupport

/// Follows the changes of a collection: a copy of it that is made of nothing else.
struct FeedFollower {
    private var cursor = JSON.quote("start")
    private(set) var copy: [Int: Item] = [:]
    /// Whether something has happened since the cursor was returned after which it may have expired.
    private var isPerhapsExpired = false

    /// The collection was dropped, moved by force or to a place without feeds, or its changes were turned off.
    mutating func mayEnd() { isPerhapsExpired = true }

    var parameters: String { #""after":\#(cursor),"limit":100"# }

    /// - Returns: whether there is more.
    mutating func apply(_ reply: Reply, of collection: String) throws -> Bool {
        guard let result = reply.result, let changes = result["changes"]?.elements, let next = result["cursor"]?.string
        else {
            guard reply.error?.name == "cursor_expired" else { return false }
            guard isPerhapsExpired else {
                throw Violation(description: "\(collection): the cursor has expired without a reason: \(reply)")
            }
            self = FeedFollower()
            return true
        }
        if result["corrupt"] != nil { throw Violation(description: "\(collection): corrupt changes: \(reply)") }
        for change in changes {
            guard let id = ClientLoad.number(ofID: change["id"]?.string) else {
                throw Violation(description: "\(collection): not a change: \(change.text)")
            }
            if change["deleted"]?.boolean == true {
                copy[id] = nil
            } else {
                guard let item = Item(change["item"]) else {
                    throw Violation(description: "\(collection): not an item: \(change.text.prefix(300))")
                }
                copy[id] = item
            }
        }
        cursor = JSON.quote(next)
        let hasMore = result["more"]?.boolean == true
        if !hasMore { isPerhapsExpired = false }
        return hasMore
    }
}
