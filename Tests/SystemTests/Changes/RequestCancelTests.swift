import CRUDTestSupport
import Testing

/// `request.cancel`.
@Suite struct RequestCancelTests {
    private static func follow(_ connection: Connection, _ cursor: String, id: String) throws {
        let params = Connection.changesParams("sqlite", cursor, #""wait":300"#)
        try connection.sendFrame(Connection.request("collection.changes", params, id: id))
    }

    private static func cancel(_ id: String, as own: String? = nil) -> String {
        let params = #"{"id":\#(id)}"#
        guard let own else { return Connection.notification("request.cancel", params) }
        return Connection.request("request.cancel", params, id: own)
    }

    @Test(arguments: ["17", #""f""#, "null", "-0", #""\u0066""#, #""""#, "123456789012345678901234567890"])
    func endsAWaitAtOnce(id: String) throws {
        let daemon = try FollowerLimitTests.daemon()
        let (writer, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try writer.create("sqlite", "a", "0").result != nil)
        var first = try connection.changes("sqlite")
        // A feed that is being completed would wake the request.
        let deadline = Deadline()
        while first.more {
            try #require(!deadline.hasPassed)
            first = try connection.changes("sqlite", after: first.cursor)
        }
        var cursor = first.cursor
        for isNotification in [false, true] {
            try Self.follow(connection, cursor, id: id)
            try writer.awaitMetric("crudd_changes_followers", 1)
            try connection.sendFrame(Self.cancel(id, as: isNotification ? nil : #""c""#))
            // Its reply comes first.
            let reply = try connection.receive()
            let page = try Connection.ChangesPage(reply)
            #expect(reply.id.text == id && page.changes.isEmpty && !page.more)
            if !isNotification {
                let reply = try connection.receive()
                #expect(reply.id.text == #""c""# && reply.result?.text == "{}")
            }
            try writer.awaitMetric("crudd_changes_followers", 0)
            #expect(try writer.update("sqlite", "a", "1").result != nil)
            // Nothing is missed behind it, and nothing comes of it any more.
            let next = try connection.changes("sqlite", after: page.cursor)
            #expect(next.ids == ["a"])
            cursor = next.cursor
        }
        #expect(try connection.finish().isEmpty)
    }

    /// What is still looked for does not begin to wait.
    @Test func endsAWaitThatHasNotBegun() throws {
        let daemon = try FollowerLimitTests.daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        let params = Connection.changesParams("sqlite", cursor, #""wait":300"#)
        for _ in 0..<200 {
            try connection.send(
                Connection.frame(Connection.request("collection.changes", params, id: "1"))
                    + Connection.frame(Self.cancel("1", as: "2")))
            let replies = try [connection.receive(), connection.receive()]
            let page = try #require(replies.first { $0.id.text == "1" })
            // One that waits for earlier requests is withdrawn.
            #expect(try page.error?.name == "unavailable" || Connection.ChangesPage(page).changes.isEmpty)
            #expect(replies.first { $0.id.text == "2" }?.result?.text == "{}")
        }
        #expect(try connection.isUsable())
    }

    /// The write that has begun takes effect; what waits for it is withdrawn.
    @Test func withdrawsWhatHasNotBegun() throws {
        let daemon = try FollowerLimitTests.daemon()
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try connection.create("sqlite", "a", "0").result != nil)
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/main.sqlite")
        let operation = #"{"op":"upsert","collection":"sqlite","id":"b","item":1}"#
        let requests = [
            ("record.update", Connection.params("sqlite", "a", item: "1")),
            ("record.read", Connection.params("sqlite", "a")),
            ("record.update", Connection.params("sqlite", "a", item: "2")),
            ("record.batch", #"{"operations":[\#(operation)]}"#),
            ("record.query", #"{"collection":"sqlite"}"#),
            ("record.read", Connection.params("sqlite", "a")),
        ]
        for (number, request) in requests.enumerated() {
            try connection.sendFrame(Connection.request(request.0, request.1, id: "\(number)"))
        }
        for number in [2, 3, 4, 0, 2, 1] { try connection.sendFrame(Self.cancel("\(number)")) }
        try connection.sendFrame(Self.cancel("3", as: "9"))
        for number in [2, 3, 4, 1] {
            let reply = try connection.receive()
            #expect(reply.id.text == "\(number)" && reply.error?.name == "unavailable", "\(reply)")
        }
        #expect(try connection.receive().id.text == "9")
        try lock.end()
        let replies = try [connection.receive(), connection.receive()]
        #expect(replies.map(\.id.text) == ["0", "5"])
        #expect(replies[0].result?["revision"] != nil)
        #expect(replies[1].result?["item"]?.text == "1")
        #expect(try connection.exists("sqlite", "b") == false)
        // The charges are given back.
        let sessions = try #require(try administrator.call("session.list").result?["sessions"]?.elements)
        #expect(sessions.max { $0["id"]?.integer ?? 0 < $1["id"]?.integer ?? 0 }?["heldBytes"]?.integer == 0)
    }

    /// Unknown ids, its own, those of elements of arrays, of requests that are done, and of other connections.
    @Test func leavesEverythingElse() throws {
        let daemon = try FollowerLimitTests.daemon()
        let (other, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try other.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        try Self.follow(connection, cursor, id: "1")
        try other.awaitMetric("crudd_changes_followers", 1)
        for id in ["2", #""1""#, "null", "1000", #""\u0031""#, "9"] {
            try connection.sendFrame(Self.cancel(id, as: "9"))
            #expect(try connection.receive().result?.text == "{}")
        }
        #expect(try other.call("request.cancel", #"{"id":1}"#).result?.text == "{}")
        for id in ["1.5", "1e0", "{}", "[1]", "true"] {
            try connection.sendFrame(Self.cancel(id, as: "9"))
            let error = try connection.receive().error
            #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "id")
        }
        #expect(try other.call("request.cancel").error?.details?["member"]?.string == "id")
        let elements = [
            Connection.request("record.update", Connection.params("sqlite", "z", item: "1"), id: "20"),
            Self.cancel("20", as: "21"), Self.cancel("22", as: "22"), Self.cancel("23", as: "24"),
            Connection.request("record.exists", Connection.params("sqlite", "a"), id: "23"),
        ]
        try connection.sendFrame("[\(elements.joined(separator: ","))]")
        let replies = try connection.receiveBatch()
        #expect(replies.count == 5 && replies[0].error?.name == "record_not_found")
        #expect(replies[1...3].allSatisfy { $0.result?.text == "{}" })
        #expect(replies[4].result?["exists"]?.boolean == true)
        try other.awaitMetric("crudd_changes_followers", 1)
        // In an array, too, it ends what an earlier frame has begun.
        try connection.sendFrame("[\(Self.cancel("1", as: "30")),\(Self.cancel("1", as: "31"))]")
        #expect(try Connection.ChangesPage(connection.receive()).changes.isEmpty)
        #expect(try connection.receiveBatch().map(\.id.text) == ["30", "31"])
        try other.awaitMetric("crudd_changes_followers", 0)
    }

    /// Two requests of one id, which the protocol forbids: the daemon loses neither.
    @Test func survivesIDsThatOccurTwice() throws {
        let daemon = try FollowerLimitTests.daemon()
        let (writer, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try writer.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        for _ in 0..<50 { try Self.follow(connection, cursor, id: "1") }
        try writer.awaitMetric("crudd_changes_followers", 50)
        for _ in 0..<3 { try connection.sendFrame(Self.cancel("1")) }
        #expect(try Connection.ChangesPage(connection.receive()).changes.isEmpty)
        #expect(try writer.update("sqlite", "a", "1").result != nil)
        for _ in 0..<49 { #expect(try Connection.ChangesPage(connection.receive()).ids == ["a"]) }
        #expect(try connection.isUsable())
        for _ in 0..<50 { try Self.follow(connection, cursor, id: "1") }
        connection.close()
        try writer.awaitMetric("crudd_changes_followers", 0)
    }

    /// Some thousands come and go on one connection, in any order, beside writes, on several loops.
    @Test(arguments: [1, 4])
    func ofManyInAnyOrder(seed: UInt64) throws {
        let daemon = try FollowerLimitTests.daemon(loops: Int(seed))
        var random = SeededGenerator(seed: seed)
        let (writer, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try writer.create("sqlite", "a", "0").result != nil)
        var cursor = try connection.changes("sqlite").cursor
        for round in 0..<10 {
            try FollowerLimitTests.follow(connection, 0..<500, after: cursor)
            if round % 2 == 0 { try writer.awaitMetric("crudd_changes_followers", 500) }
            let cancelled = (0..<500).shuffled(using: &random).prefix(400)
            try connection.send(cancelled.flatMap { Connection.frame(Self.cancel("\"f\($0)\"")) })
            #expect(try writer.update("sqlite", "a", "\(round)").result != nil)
            var ids: Set<String> = []
            for _ in 0..<500 {
                let reply = try connection.receive()
                ids.insert(reply.id.text)
                if reply.error?.name == "unavailable" { continue }
                let page = try Connection.ChangesPage(reply)
                #expect(page.ids.isEmpty || page.ids == ["a"])
                if !page.ids.isEmpty { cursor = page.cursor }
            }
            #expect(ids.count == 500)
            try writer.awaitMetric("crudd_changes_followers", 0)
        }
        #expect(try daemon.stop() == .exited(0))
    }
}
