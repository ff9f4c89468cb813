import CRUDTestSupport

/// Looks at everything that a collection has, while no client uses it.
extension Administrator {
    func checkRecords(of name: String) throws {
        let wasPaused = load.paused.contains(name)
        defer { if !wasPaused { load.paused.remove(name) } }
        try pause(name)
        guard let count = load.histories[name]?.count else { return }
        for start in stride(from: 0, to: count, by: 60) {
            let reads = (start..<min(start + 60, count)).compactMap { id in
                (load.histories[name]?.begin(.read, id, on: -1)).map { (id: id, ticket: $0) }
            }
            let list = reads.map { JSON.quote(ClientLoad.id($0.id)) }.joined(separator: ",")
            try execute(
                .readMany(reads), on: name, "record.readMany", #"{"collection":\#(JSON.quote(name)),"ids":[\#(list)]}"#)
        }
        for selection in [
            Selection(condition: .all), Selection(condition: .key(number(below: Item.keys)), isSorted: true),
        ] {
            guard let scan = load.histories[name]?.beginScan() else { continue }
            var kind = ClientRequest.Kind.query(selection, scan: scan, found: [:])
            var cursor: String?
            while true {
                let (next, reply) = try execute(
                    kind, on: name, "record.query", selection.query(of: name, cursor: cursor))
                guard let next else { break }
                kind = next
                cursor = reply.result?["cursor"]?.string
            }
            guard let scan = load.histories[name]?.beginScan() else { continue }
            try execute(.count(selection, scan: scan), on: name, "record.count", selection.count(of: name))
        }
        try followFeed(of: name)
    }

    @discardableResult
    private func execute(
        _ kind: ClientRequest.Kind, on name: String, _ method: String, _ params: String
    ) throws -> (next: ClientRequest.Kind?, reply: Reply) {
        let reply = try reply(to: method, params)
        guard var history = load.histories.removeValue(forKey: name) else { return (nil, reply) }
        defer { load.histories[name] = history }
        let check = ReplyCheck(reply: reply, request: ClientRequest(collection: name, kind: kind))
        return (try check.execute(on: &history), reply)
    }

    /// Reads the changes since the last time: what comes of them is what is there.
    private func followFeed(of name: String) throws {
        guard var feed = feeds[name], let history = load.histories[name] else { return }
        var copy = history
        let scan = copy.beginScan()
        let mayEnd = try mayFeedEnd(of: name)
        while true {
            // The move may end between two pages.
            if mayEnd { feed.mayEnd() }
            let reply = try reply(to: "collection.changes", #"{"collection":\#(JSON.quote(name)),\#(feed.parameters)}"#)
            if let error = reply.error, error.name != "cursor_expired" { return }
            guard try feed.apply(reply, of: name) else { break }
        }
        do {
            try copy.endScan(scan, found: feed.copy)
        } catch {
            throw Violation(description: "the feed of changes: \(error)")
        }
        if try mayFeedEnd(of: name) { feed.mayEnd() }
        feeds[name] = feed
    }

    /// Whether the collection is being moved from or to a place that keeps no feeds.
    private func mayFeedEnd(of name: String) throws -> Bool {
        guard let known = try whereabouts()[name], let destination = known.destination else { return false }
        return !known.place.keepsFeeds || !destination.keepsFeeds
    }

    // MARK: The end

    /// Waits until no collection is being moved, or the time is over.
    func awaitMoves(within timeout: Duration) throws {
        let deadline = Deadline(timeout)
        while !deadline.hasPassed {
            let moves = try reply(to: "daemon.status").result?["moves"]?.elements ?? []
            if moves.allSatisfy({ $0["phase"]?.string == "failed" }) { return }
            _ = try load.run(on: daemon, replies: 10, within: .milliseconds(200))
        }
    }

    /// Everything works: moves come to their end, all records are what they must be, and are so after a start.
    func finish() throws {
        try heal()
        try awaitMoves(within: Self.timeout)
        for round in 0..<2 {
            for name in names { try checkRecords(of: name) }
            try checkPlaces(of: names)
            guard round == 0 else { break }
            try end(gracefully: true)
            try startInForce()
        }
    }
}
