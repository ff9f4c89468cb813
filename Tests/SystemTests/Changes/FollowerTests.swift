import CRUDTestSupport
import Glibc
import Testing

/// Requests that wait for changes.
@Suite struct FollowerTests {
    private static func follow(
        _ connection: Connection, _ collection: String, _ cursor: String, id: String = "1"
    ) throws {
        try connection.sendFrame(
            Connection.request(
                "collection.changes", Connection.changesParams(collection, cursor, #""wait":60"#), id: id))
    }

    /// Waits until so many requests of other connections have been accepted and wait: what is asked afterwards is.
    private static func settle(_ connections: [Connection]) throws {
        // A connection's later request has its reply while the earlier one waits.
        for connection in connections { #expect(try connection.isUsable()) }
    }

    @Test(arguments: ChangesTests.feeds)
    func areWokenByAWrite(collection: String) throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let (writer, follower) = (try daemon.connect(), try daemon.connect())
        // Even where there is no such collection yet.
        var cursor = try follower.changes(collection).cursor
        for round in 0..<20 {
            try Self.follow(follower, collection, cursor)
            if round % 2 == 0 { try Self.settle([follower]) }
            #expect(try writer.upsert(collection, "\(round)", "\(round)").result != nil)
            let page = try Connection.ChangesPage(follower.receive())
            #expect(page.ids == ["\(round)"])
            cursor = page.cursor
        }
    }

    @Test func doNotHoldUpTheirOwnSession() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let connection = try daemon.connect()
        #expect(try connection.create("sqlite", "a", "1").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        try Self.follow(connection, "sqlite", cursor, id: "\"f\"")
        #expect(try connection.item("sqlite", "a") == "1")
        try connection.sendFrame(
            Connection.request("record.upsert", Connection.params("sqlite", "a", item: "2"), id: "\"w\""))
        let replies = [try connection.receive(), try connection.receive()]
        #expect(Set(replies.map(\.id.text)) == [#""f""#, #""w""#])
        #expect(replies.allSatisfy { $0.error == nil }, "\(replies)")
    }

    /// Those behind them would wait, too.
    @Test func doNotWaitInABatchArray() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let connection = try daemon.connect()
        #expect(try connection.create("sqlite", "a", "1").result != nil)
        let params = Connection.changesParams("sqlite", try connection.changes("sqlite").cursor, #""wait":60"#)
        let begin = ContinuousClock.now
        let requests = [
            Connection.request("collection.changes", params, id: "1"),
            Connection.request("record.upsert", Connection.params("sqlite", "b", item: "2"), id: "2"),
            Connection.request("collection.changes", params, id: "3"),
        ]
        try connection.sendFrame("[\(requests.joined(separator: ","))]")
        var replies: [String: Reply] = [:]
        for reply in try connection.receiveBatch() { replies[reply.id.text] = reply }
        #expect(begin.duration(to: .now) < .seconds(20))
        let (first, second) = (try #require(replies["1"]), try #require(replies["3"]))
        #expect(try Connection.ChangesPage(first).ids == [] && replies["2"]?.error == nil)
        #expect(try Connection.ChangesPage(second).ids == ["b"])
    }

    @Test func endWithTheirTime() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let connection = try daemon.connect()
        let cursor = try connection.changes("sqlite").cursor
        for time in ["0", "0.05", "0.3"] {
            let begin = ContinuousClock.now
            let page = try connection.changes("sqlite", after: cursor, #""wait":\#(time)"#)
            #expect(page.changes.isEmpty && !page.more)
            #expect(begin.duration(to: .now) >= .milliseconds(time == "0" ? 0 : time == "0.3" ? 295 : 45))
        }
    }

    @Test func manyAreWokenTogetherAndCostLittle() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let writer = try daemon.connect()
        #expect(try writer.create("sqlite", "a", "1").result != nil)
        let cursor = try writer.changes("sqlite").cursor
        let followers = try (0..<200).map { _ in try daemon.connect() }
        for follower in followers { #expect(try follower.isUsable()) }
        let before = try daemon.residentBytes
        for follower in followers { try Self.follow(follower, "sqlite", cursor) }
        try Self.settle([writer])
        for follower in followers { _ = try follower.changes("sqlite", after: "now") }
        #expect(try daemon.residentBytes - before <= 8 << 20)
        #expect(try writer.update("sqlite", "a", "2").result != nil)
        let frames = try followers.map { try $0.receiveFrame() }
        for frame in frames {
            #expect(try Connection.ChangesPage(Reply(JSON(parsing: try #require(frame)))).ids == ["a"])
        }
    }

    /// Whatever ends them, they have their reply at once.
    @Test func endWithWhatTheyFollow() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let (administrator, follower) = (try daemon.connect(), try daemon.connect())
        for collection in ["sqlite", "sqlitechild"] {
            #expect(try administrator.create(collection, "a", "1").result != nil)
        }
        func follow(_ collection: String) throws {
            let cursor = try follower.changes(collection).cursor
            try Self.follow(follower, collection, cursor)
            // One that is still being looked for, and not held back yet, may end with `unavailable`.
            try administrator.awaitMetric("crudd_changes_followers", 1)
        }
        try follow("sqlite")
        // A reload that leaves the collection as it is ends no wait.
        _ = try administrator.reload()
        try Self.settle([follower])
        #expect(try administrator.upsert("sqlite", "b", "1").result != nil)
        #expect(try Connection.ChangesPage(follower.receive()).ids == ["b"])
        try follow("sqlite")
        #expect(try administrator.call("collection.drop", #"{"collection":"sqlite"}"#).result != nil)
        let dropped = try follower.receive()
        let isDropped = dropped.error?.name == "cursor_expired" || dropped.result?["changes"]?.elements?.isEmpty == true
        #expect(isDropped, "\(dropped)")
        try follow("sqlitechild")
        let status = try ChildDaemon.status(of: "sqlitechild", administrator)
        kill(try #require(status.pid), SIGKILL)
        let lost = try follower.receive()
        #expect(lost.error?.name == "unavailable" || lost.result?["changes"]?.elements?.isEmpty == true, "\(lost)")
        try ChildDaemon.awaitReady("sqlitechild", notWith: status.pid, administrator)
        #expect(try follower.changes("sqlitechild").ids == ["a"])
    }

    @Test func aDaemonThatStopsRepliesToThem() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let followers = try (0..<200).map { _ in try daemon.connect() }
        let cursor = try followers[0].changes("sqlite").cursor
        for follower in followers { try Self.follow(follower, "sqlite", cursor) }
        try Self.settle(followers)
        let begin = ContinuousClock.now
        #expect(try daemon.stop() == .exited(0))
        #expect(begin.duration(to: .now) < .seconds(20))
        for follower in followers { #expect(try Connection.ChangesPage(follower.receive()).changes.isEmpty) }
    }

    /// Sessions that go away while they wait leave nothing behind.
    @Test func goWithTheirSession() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let writer = try daemon.connect()
        #expect(try writer.create("sqlite", "a", "1").result != nil)
        let cursor = try writer.changes("sqlite").cursor
        for _ in 0..<50 {
            let follower = try daemon.connect()
            try Self.follow(follower, "sqlite", cursor)
            follower.close()
        }
        #expect(try writer.update("sqlite", "a", "2").result != nil)
        let deadline = Deadline()
        while try writer.call("daemon.status").result?["sessions"]?.integer != 1 { try #require(!deadline.hasPassed) }
        #expect(try daemon.stop() == .exited(0))
    }
}
