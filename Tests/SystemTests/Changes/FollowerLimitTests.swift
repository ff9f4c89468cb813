import CRUDTestSupport
import Testing

/// What requests that wait for changes leave to others, and what they cost.
@Suite struct FollowerLimitTests {
    static func daemon(_ limits: String? = nil, loops: Int? = nil) throws -> Daemon {
        var configuration = ChangesTests.configuration()
        configuration.limits = limits
        configuration.loops = loops
        return try Daemon(configuration)
    }

    /// Sends requests that wait, all in one write; their ids are `"f0"`, `"f1"` and so on.
    static func follow(
        _ connection: Connection, _ numbers: Range<Int>, after cursor: String, more: String = #""wait":300"#
    ) throws {
        let params = Connection.changesParams("sqlite", cursor, more)
        try connection.send(
            numbers.flatMap {
                Connection.frame(Connection.request("collection.changes", params, id: "\"f\($0)\""))
            })
    }

    /// The only other session than the administrator's, which is the first.
    private static func session(_ administrator: Connection) throws -> JSON {
        let sessions = try #require(try administrator.call("session.list").result?["sessions"]?.elements)
        try #require(sessions.count == 2)
        return try #require(sessions.max { $0["id"]?.integer ?? 0 < $1["id"]?.integer ?? 0 })
    }

    @Test(arguments: [(inflight: 1, followers: 300), (inflight: 8, followers: 300), (inflight: 256, followers: 1000)])
    func requestsRunBesideMoreOfThemThanMayBeInFlight(limits: (inflight: Int, followers: Int)) throws {
        let daemon = try Self.daemon("inflight_per_session: \(limits.inflight)")
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try connection.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        try Self.follow(connection, 0..<limits.followers, after: cursor)
        try administrator.awaitMetric("crudd_changes_followers", limits.followers)
        for _ in 0..<20 { #expect(try connection.item("sqlite", "a") == "0") }
        let reads = try connection.pipeline(
            (0..<300).map { _ in ("record.read", Connection.params("sqlite", "a")) })
        #expect(reads.allSatisfy { $0.result != nil })
        let session = try Self.session(administrator)
        #expect(session["inflight"]?.integer == 0 && session["followers"]?.integer == limits.followers)
        #expect(try administrator.update("sqlite", "a", "1").result != nil)
        var replied: Set<String> = []
        for _ in 0..<limits.followers {
            let reply = try connection.receive()
            #expect(try Connection.ChangesPage(reply).ids == ["a"])
            replied.insert(reply.id.text)
        }
        #expect(replied.count == limits.followers)
        #expect(try Self.session(administrator)["followers"]?.integer == 0)
    }

    @Test func haveALimitThatAReloadChanges() throws {
        let daemon = try Self.daemon("followers_per_session: 3")
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try connection.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        try Self.follow(connection, 0..<3, after: cursor)
        try administrator.awaitMetric("crudd_changes_followers", 3)
        let wait = Connection.changesParams("sqlite", cursor, #""wait":300"#)
        func refusal() throws -> JSON? {
            let error = try connection.call("collection.changes", wait).error
            #expect(error?.name == "limit_exceeded")
            return error?.details
        }
        let details = try refusal()
        #expect(details?["limit"]?.string == "followers_per_session" && details?["maximum"]?.integer == 3)
        // What need not wait is no follower.
        #expect(try connection.changes("sqlite", after: "start", #""wait":300"#).ids == ["a"])
        #expect(try connection.changes("sqlite", after: cursor).changes.isEmpty)
        var configuration = ChangesTests.configuration()
        configuration.limits = "followers_per_session: 2"
        try daemon.installation.configure(configuration)
        #expect(try administrator.reload() == ["limits.followers_per_session: from 3 to 2"])
        try administrator.awaitMetric("crudd_changes_followers", 3)
        #expect(try connection.call("request.cancel", #"{"id":"f9"}"#).result != nil)
        #expect(try refusal()?["maximum"]?.integer == 2)
        configuration.limits = "followers_per_session: 4"
        try daemon.installation.configure(configuration)
        _ = try administrator.reload()
        try Self.follow(connection, 3..<4, after: cursor)
        try administrator.awaitMetric("crudd_changes_followers", 4)
        #expect(try refusal()?["maximum"]?.integer == 4)
    }

    /// They are charged with their text, what it is decoded to, and a kibibyte; and with nothing when they are gone.
    @Test func chargeTheirSessionWithWhatTheyHold() throws {
        let daemon = try Self.daemon(loops: 1)
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let cursor = try connection.changes("sqlite").cursor
        let text = Connection.request(
            "collection.changes", Connection.changesParams("sqlite", cursor, #""wait":300"#), id: "\"f100\"")
        try Self.follow(connection, 100..<300, after: cursor)
        try administrator.awaitMetric("crudd_changes_followers", 200)
        #expect(try Self.session(administrator)["heldBytes"]?.integer == 200 * (text.utf8.count + 1024))
        for number in 100..<300 {
            try connection.sendFrame(Connection.notification("request.cancel", #"{"id":"f\#(number)"}"#))
            #expect(try connection.receive().id.text == "\"f\(number)\"")
        }
        #expect(try Self.session(administrator)["heldBytes"]?.integer == 0)
        let filter = #"{"op":"in","args":[{"property":"n"},[\#((0..<50).map(String.init).joined(separator: ","))]]}"#
        let more = #""wait":300,"filter":\#(filter)"#
        let long = Connection.request(
            "collection.changes", Connection.changesParams("sqlite", cursor, more), id: "\"f100\"")
        try Self.follow(connection, 100..<101, after: cursor, more: more)
        try administrator.awaitMetric("crudd_changes_followers", 1)
        #expect(
            try Self.session(administrator)["heldBytes"]?.integer
                == long.utf8.count + 17 * filter.utf8.count + 1024)
    }

    /// Many thousands take no more memory than they are charged with.
    @Test func takeNoMoreMemoryThanTheyAreChargedWith() throws {
        let daemon = try Self.daemon("followers_per_session: 4096", loops: 1)
        let administrator = try daemon.connect()
        let cursor = try administrator.changes("sqlite").cursor
        let warm = try daemon.connect()
        try Self.follow(warm, 0..<4000, after: cursor)
        try administrator.awaitMetric("crudd_changes_followers", 4000)
        warm.close()
        try administrator.awaitMetric("crudd_changes_followers", 0)
        let before = try daemon.residentBytes
        let connections = try (0..<10).map { _ in try daemon.connect() }
        for connection in connections { try Self.follow(connection, 0..<4000, after: cursor) }
        try administrator.awaitMetric("crudd_changes_followers", 40_000)
        let sessions = try #require(try administrator.call("session.list").result?["sessions"]?.elements)
        let held = sessions.compactMap { $0["heldBytes"]?.integer }.reduce(0, +)
        let taken = try daemon.residentBytes - before
        #expect(held > 40_000 * 1024 && taken <= held, "\(taken) bytes for \(held)")
        for connection in connections { connection.close() }
        try administrator.awaitMetric("crudd_changes_followers", 0)
        #expect(try administrator.isUsable())
    }

    /// Those with long filters leave room for requests: they hold half of what their session may, and no more.
    @Test func leaveRoomForRequests() throws {
        let daemon = try Self.daemon("session_bytes: 1MiB")
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try connection.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        let literals = repeatElement(#""\#(String(repeating: "x", count: 500))""#, count: 10).joined(separator: ",")
        let more = #""wait":300,"filter":{"op":"in","args":[{"property":"n"},[\#(literals)]]}"#
        try Self.follow(connection, 0..<20, after: cursor, more: more)
        var refused = 0
        // Each holds some 90 KiB.
        for _ in 0..<15 {
            let reply = try connection.receive()
            #expect(reply.error?.name == "limit_exceeded", "\(reply)")
            #expect(reply.error?.details?["limit"]?.string == "session_bytes")
            refused += 1
        }
        try administrator.awaitMetric("crudd_changes_followers", 5)
        #expect(try Self.session(administrator)["heldBytes"]?.integer ?? .max <= 512 << 10)
        let reads = try connection.pipeline(
            (0..<100).map { _ in ("record.read", Connection.params("sqlite", "a")) })
        #expect(refused == 15 && reads.allSatisfy { $0.result != nil })
        #expect(try connection.changes("sqlite", after: "start").ids == ["a"])
    }

    /// A peer that sends no more still gets what it waits for, and its session ends then.
    @Test func haveTheirRepliesAfterTheEndOfTheInput() throws {
        let daemon = try Self.daemon()
        let (writer, connection) = (try daemon.connect(), try daemon.connect())
        #expect(try writer.create("sqlite", "a", "0").result != nil)
        let cursor = try connection.changes("sqlite").cursor
        try Self.follow(connection, 0..<300, after: cursor)
        try writer.awaitMetric("crudd_changes_followers", 300)
        try connection.shutDownWriting()
        #expect(try writer.isUsable() && !connection.hasSomethingToRead())
        #expect(try writer.update("sqlite", "a", "1").result != nil)
        for _ in 0..<300 { #expect(try Connection.ChangesPage(connection.receive()).ids == ["a"]) }
        #expect(try connection.receiveFrame() == nil)
    }
}
