import CRUDTestSupport
import Glibc
import Testing

/// Requests whose replies wait for room, as their peer reads nothing, while something happens to what they are about.
@Suite struct WaitingForRoomTests {
    private static let main = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}"
    private static let leaving =
        "leaving: {plugin: sqlite, isolation: process, cache: false, options: {path: $DIRECTORY/leaving.sqlite}}"
    private static let small = "frame_bytes: 1200KiB\nitem_bytes: 600KiB\nsession_bytes: 2MiB"

    private static func daemon(_ limits: String = small) throws -> Daemon {
        var configuration = Configuration(
            backends: "\(main)\n\(leaving)",
            collections: "c: {backend: leaving, changes: true}\nd: {backend: main}", limits: limits)
        configuration.loops = 1
        let daemon = try Daemon(configuration)
        let connection = try daemon.connect()
        let large = #""\#(String(repeating: "x", count: 500_000))""#
        #expect(try connection.create("c", "large", large).result != nil)
        return daemon
    }

    private static func read(_ id: String) -> [UInt8] {
        Connection.frame(Connection.request("record.read", Connection.params("c", "large"), id: id))
    }

    /// Sends frames at once and waits until the connection's output is full and nothing happens any more.
    private static func fill(_ connection: Connection, with frames: [[UInt8]], _ administrator: Connection) throws {
        try connection.send(Array(frames.joined()))
        var (held, count) = (0, 0)
        let deadline = Deadline()
        while count < 10 {
            try #require(!deadline.hasPassed, "\(held)")
            poll(nil, 0, 20)
            let sessions = try administrator.call("session.list").result?["sessions"]?.elements
            let now = sessions?.compactMap { $0["heldBytes"]?.integer }.max() ?? 0
            count = now == held && now > 1 << 20 ? count + 1 : 0
            held = now
        }
    }

    /// A reload takes backend and collection away.
    @Test func theBackendLeaves() throws {
        let daemon = try Self.daemon()
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let cursor = try administrator.changes("c").cursor
        let params = Connection.changesParams("c", cursor, #""wait":60"#)
        try connection.sendFrame(Connection.request("collection.changes", params, id: #""follower""#))
        try administrator.awaitMetric("crudd_changes_followers", 1)
        try Self.fill(connection, with: (0..<40).map { Self.read("\($0)") }, administrator)
        // The follower is woken, and waits for room, too.
        #expect(try administrator.create("c", "small", "1").result != nil)
        try administrator.awaitMetric("crudd_changes_followers", 0)
        try daemon.installation.configure(
            Configuration(backends: Self.main, collections: "d: {backend: main}", limits: Self.small))
        #expect(try administrator.reload(force: true).contains("backend leaving: removed"))
        let replies = try (0...40).map { _ in try connection.receive() }
        #expect(Set(replies.map(\.id.text)).count == 41)
        for reply in replies {
            if reply.id.text == #""follower""# {
                #expect(try Connection.ChangesPage(reply).changes.isEmpty, "\(reply)")
            } else {
                let isRefused = ["unavailable", "collection_not_found"].contains(reply.error?.name)
                #expect(reply.result != nil || isRefused, "\(reply.error.map { "\($0)" } ?? "")")
            }
        }
        #expect(replies.contains { $0.error?.name == "collection_not_found" })
        #expect(try connection.isUsable())
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Cancelled are those for which there is no room, not only those that wait for them.
    @Test func whatIsCancelledNeedsNoRoom() throws {
        let names = (0..<6000).map { "name-that-is-long-\($0): {backend: leaving}" }.joined(separator: "\n")
        let daemon = try Daemon(
            Configuration(
                backends: Self.leaving, collections: "c: {backend: leaving}\n\(names)", limits: Self.small, loops: 1))
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let large = #""\#(String(repeating: "x", count: 500_000))""#
        #expect(try administrator.create("c", "large", large).result != nil)
        try Self.fill(connection, with: (0..<8).map { Self.read("\($0)") }, administrator)
        try connection.sendFrame(Connection.request("collection.list", id: #""list""#))
        for id in (0..<8).map(String.init) + [#""list""#] {
            try connection.sendFrame(Connection.notification("request.cancel", #"{"id":\#(id)}"#))
        }
        try connection.sendFrame(Connection.request("daemon.ping", id: #""ping""#))
        try administrator.awaitMetric(#"crudd_requests_total{method="daemon.ping",outcome="ok"}"#, 1)
        let replies = try (0..<10).map { _ in try connection.receive() }
        #expect(Set(replies.map(\.id.text)).count == 10)
        for reply in replies where reply.result == nil { #expect(reply.error?.name == "unavailable", "\(reply)") }
        #expect(replies.first { $0.id.text == #""list""# }?.error != nil)
        // Four had found room, and the ping.
        #expect(replies.count { $0.result != nil } < 7)
        let sessions = try #require(try administrator.call("session.list").result?["sessions"]?.elements)
        #expect(sessions.max { $0["id"]?.integer ?? 0 < $1["id"]?.integer ?? 0 }?["heldBytes"]?.integer == 0)
        #expect(try connection.isUsable())
    }

    /// What has been executed is not called unavailable, which would mean that it was not.
    @Test func aReloadIsExecutedBefore() throws {
        let daemon = try Self.daemon(Self.small + "\nrequest_timeout: 8s")
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        // Its reply names all of them.
        let new = (0..<4000).map { "e\($0)\(String(repeating: "-", count: 100)): {backend: main}" }
        var configuration = Configuration(
            backends: "\(Self.main)\n\(Self.leaving)",
            collections: "c: {backend: leaving, changes: true}\nd: {backend: main}\n\(new.joined(separator: "\n"))",
            limits: Self.small + "\nrequest_timeout: 8s")
        configuration.loops = 1
        try daemon.installation.configure(configuration)
        let reload = Connection.frame(Connection.request("daemon.reload", id: #""reload""#))
        try Self.fill(connection, with: (0..<40).map { Self.read("\($0)") } + [reload], administrator)
        let collection = "e7\(String(repeating: "-", count: 100))"
        let deadline = Deadline()
        while try administrator.upsert(collection, "a", "1").result == nil { try #require(!deadline.hasPassed) }
        poll(nil, 0, 9000)
        let replies = try (0...40).map { _ in try connection.receive() }
        let reply = try #require(replies.first { $0.id.text == #""reload""# })
        // The reads have waited longer, and leave their room to it.
        #expect(reply.result != nil || reply.error?.name == "outcome_unknown", "\("\(reply)".prefix(200))")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// A daemon that stops begins no search any more, and does not wait for those that find no room.
    @Test func theDaemonStops() throws {
        let daemon = try Self.daemon()
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let query = Connection.frame(Connection.request("record.query", #"{"collection":"c"}"#, id: #""query""#))
        // There is room for a page, and not for one with the record.
        try Self.fill(connection, with: (0..<4).map { Self.read("\($0)") }, administrator)
        try Self.fill(connection, with: [query], administrator)
        daemon.process.signal(SIGTERM)
        poll(nil, 0, 3000)
        let replies = try (0...4).map { _ in try connection.receive() }
        let reply = try #require(replies.first { $0.id.text == #""query""# })
        #expect(reply.error?.name == "unavailable", "\("\(reply)".prefix(200))")
        #expect(try daemon.process.waitForExit() == .exited(0), "\(daemon.log)")
    }

    /// What followers hold does not count where another request of their connection needs all there is.
    @Test func followersLeaveRoomForTheLongestReply() throws {
        let daemon = try Self.daemon("session_bytes: 16MiB\nrequest_timeout: 60s")
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let cursor = try administrator.changes("c").cursor
        let params = Connection.changesParams("c", cursor, #""wait":60"#)
        for number in 0..<100 {
            try connection.sendFrame(Connection.request("collection.changes", params, id: "\(number)"))
        }
        try administrator.awaitMetric("crudd_changes_followers", 100)
        let reads = (100..<104).map { Connection.request("record.read", Connection.params("c", "large"), id: "\($0)") }
        try connection.sendFrame("[\(reads.joined(separator: ","))]")
        let replies = try connection.receiveBatch()
        #expect(replies.count == 4)
        for reply in replies { #expect(reply.result != nil, "\(reply)") }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
