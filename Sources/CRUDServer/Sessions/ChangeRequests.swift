/// A request that waits for changes or may come to wait.
protocol ChangeRequest: AnyObject {
    /// As its client has sent it.
    var id: [UInt8]? { get }
    /// Its index among those of its session; nil: it is not among them.
    var indexAmongChanges: Int? { get set }

    /// Ends the wait, or prevents that there will be one.
    func cancel()
    /// Ends the wait, if it does.
    func endWait()
    /// Replies that there is nothing to say.
    func replyEmpty()
}

/// The requests of a session that wait for changes or may come to wait, until they are done.
struct ChangeRequests {
    /// All of them, in no order.
    private(set) var all: [any ChangeRequest] = []
    /// Of several with one id, which the protocol forbids, the latest.
    private var latest: [[UInt8]: any ChangeRequest] = [:]

    /// The request with an id.
    subscript(id: [UInt8]) -> (any ChangeRequest)? { latest[id] }

    mutating func insert(_ request: any ChangeRequest) {
        guard let id = request.id else { return }
        request.indexAmongChanges = all.count
        all.append(request)
        latest[id] = request
    }

    /// Removes the request at an index.
    mutating func remove(at index: Int) {
        let request = all[index]
        request.indexAmongChanges = nil
        let last = all.removeLast()
        if index < all.count {
            all[index] = last
            last.indexAmongChanges = index
        }
        if let id = request.id, latest[id] === request { latest[id] = nil }
    }
}
