/// JSON-RPC on a raw connection.
extension Connection {
    /// A request's text. `id` and `params` are JSON text.
    package static func request(_ method: String, _ params: String? = nil, id: String) -> String {
        let tail = params.map { #","params":\#($0)"# } ?? ""
        return #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)"\#(tail)}"#
    }

    /// A notification's text.
    package static func notification(_ method: String, _ params: String? = nil) -> String {
        let tail = params.map { #","params":\#($0)"# } ?? ""
        return #"{"jsonrpc":"2.0","method":"\#(method)"\#(tail)}"#
    }

    /// The next reply, which must not be an array.
    package func receive(until deadline: Deadline = Deadline()) throws -> Reply {
        guard let frame = try receiveFrame(until: deadline) else { throw Failure("the daemon closed the connection") }
        return try Reply(JSON(parsing: frame))
    }

    /// The next reply, which must be an array.
    package func receiveBatch() throws -> [Reply] {
        guard let frame = try receiveFrame() else { throw Failure("the daemon closed the connection") }
        guard let elements = try JSON(parsing: frame).elements else {
            throw Failure("not an array: \(String(decoding: frame, as: UTF8.self))")
        }
        return try elements.map(Reply.init)
    }

    /// Sends a request and waits for its reply. No other may be in flight.
    package func call(_ method: String, _ params: String? = nil) throws -> Reply {
        lastID += 1
        try sendFrame(Self.request(method, params, id: String(lastID)))
        let reply = try receive()
        guard reply.id.text == String(lastID) else { throw Failure("a reply to another request: \(reply)") }
        return reply
    }

    /// Sends all requests in one write and returns their replies in that order.
    package func pipeline(_ requests: [(method: String, params: String)]) throws -> [Reply] {
        let first = lastID + 1
        var bytes: [UInt8] = []
        for request in requests {
            lastID += 1
            bytes += Self.frame(Self.request(request.method, request.params, id: String(lastID)))
        }
        try send(bytes)
        var replies = [Reply?](repeating: nil, count: requests.count)
        for _ in requests {
            let reply = try receive()
            guard let id = Int(reply.id.text), replies.indices.contains(id - first), replies[id - first] == nil else {
                throw Failure("a reply to another request: \(reply)")
            }
            replies[id - first] = reply
        }
        return replies.compactMap { $0 }
    }

    /// Shuts down writing and returns everything that comes until the daemon closes.
    package func finish() throws -> [Reply] {
        try shutDownWriting()
        var replies: [Reply] = []
        while let frame = try receiveFrame() { replies.append(try Reply(JSON(parsing: frame))) }
        return replies
    }

    /// Whether the daemon still replies on this connection.
    package func isUsable() throws -> Bool {
        try call("daemon.ping").result?.text == "{}"
    }
}
