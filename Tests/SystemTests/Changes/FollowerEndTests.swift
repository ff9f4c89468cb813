import CRUDTestSupport
import Glibc
import Testing

/// What ends the wait of a follower: its collection is moved, or may not be followed any more.
@Suite struct FollowerEndTests {
    private static func configuration(_ rule: String, access: String? = nil) -> Configuration {
        var configuration = MovePlaces.configuration(rule)
        configuration.socket = #"mode: "0666""#
        configuration.access = access
        return configuration
    }

    /// Sends a request that waits, and waits until it does.
    private static func follow(_ connection: Connection, after cursor: String) throws {
        let params = Connection.changesParams("c", cursor, #""wait":60"#)
        try connection.sendFrame(Connection.request("collection.changes", params, id: "1"))
        #expect(try connection.isUsable())
    }

    /// Every one continues in the new place where it was.
    @Test func theCollectionIsMoved() throws {
        let daemon = try Daemon(Self.configuration("{backend: main, changes: true}"))
        let administrator = try daemon.connect()
        for id in 0..<50 { #expect(try administrator.create("c", "\(id)", "\(id)").result != nil) }
        let cursor = try administrator.changes("c").cursor
        let followers = try (0..<20).map { _ in try daemon.connect() }
        for follower in followers { try Self.follow(follower, after: cursor) }
        try daemon.installation.configure(Self.configuration("{backend: kid, format: plist, changes: true}"))
        #expect(try administrator.reloadMoving() == ["c"])
        try administrator.awaitMoves()
        for follower in followers {
            let reply = try follower.receive()
            // The reload has ended its wait, or the move.
            #expect(try Connection.ChangesPage(reply).changes.isEmpty)
            #expect(try follower.changes("c", after: cursor).changes.isEmpty)
        }
        let page = try followers[0].changes("c", after: cursor)
        #expect(try followers[0].changes("c", after: "start").ids.count == 50)
        try Self.follow(followers[0], after: page.cursor)
        #expect(try administrator.update("c", "7", "8").result != nil)
        #expect(try Connection.ChangesPage(followers[0].receive()).ids == ["7"])
    }

    /// It is answered, and the session ends at once: not when its peer has had the time to read its replies.
    ///
    /// Which would be five seconds: one of several rounds takes less, however busy the machine is.
    @Test(arguments: [1, 3])
    func itsSessionIsClosed(loops: Int) throws {
        var configuration = Self.configuration("{backend: main, changes: true}")
        configuration.loops = loops
        let daemon = try Daemon(configuration)
        let administrator = try daemon.connect()
        #expect(try administrator.create("c", "a", "1").result != nil)
        let cursor = try administrator.changes("c").cursor
        let isClosedAtOnce = try (0..<4).contains { _ in
            try Self.timeToClose(try daemon.connect(), after: cursor, administrator) < .seconds(5)
        }
        #expect(isClosedAtOnce)
    }

    private static func timeToClose(
        _ follower: Connection, after cursor: String, _ administrator: Connection
    ) throws -> Duration {
        try follow(follower, after: cursor)
        let sessions = try administrator.call("session.list").result?["sessions"]?.elements
        let session = try #require(sessions?.last?["id"]?.integer)
        let start = ContinuousClock.now
        #expect(try administrator.call("session.close", #"{"session":\#(session)}"#).result?.text == "{}")
        let page = try Connection.ChangesPage(follower.receive())
        #expect(page.changes.isEmpty)
        #expect(try follower.receiveFrame() == nil)
        return start.duration(to: .now)
    }

    @Test func changesAreTurnedOff() throws {
        let daemon = try Daemon(Self.configuration("{backend: main, changes: true}"))
        let (administrator, follower) = (try daemon.connect(), try daemon.connect())
        #expect(try administrator.create("c", "a", "1").result != nil)
        let cursor = try administrator.changes("c").cursor
        try Self.follow(follower, after: cursor)
        try daemon.installation.configure(Self.configuration("{backend: main}"))
        _ = try administrator.reload()
        let reply = try follower.receive()
        #expect(reply.result?["changes"]?.elements?.isEmpty ?? (reply.error?.name == "cursor_expired"), "\(reply)")
        #expect(try follower.changesError("c", after: cursor) == "unsupported")
    }

    /// A right to read is enough, and is needed from request to request.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to run as another user"))
    func theRightToReadIsTakenAway() throws {
        let rule = "{backend: main, changes: true}"
        let daemon = try Daemon(Self.configuration(rule, access: "- {users: [65534], allow: [read]}"))
        let (administrator, follower) = (
            try daemon.connect(), try daemon.connect(as: Peer(user: 65534, group: 65534))
        )
        let cursor = try follower.changes("c").cursor
        try Self.follow(follower, after: cursor)
        #expect(try administrator.create("c", "a", "1").result != nil)
        let page = try Connection.ChangesPage(follower.receive())
        #expect(page.ids == ["a"])
        try Self.follow(follower, after: page.cursor)
        try daemon.installation.configure(Self.configuration(rule, access: "- {users: [65534], allow: [write]}"))
        _ = try administrator.reload()
        #expect(try Connection.ChangesPage(follower.receive()).changes.isEmpty)
        #expect(try administrator.create("c", "b", "1").result != nil)
        #expect(try follower.changesError("c", after: page.cursor) == "permission_denied")
    }
}

/// Followers that read nothing of what they are told.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to run as another user")) struct IdleFollowerTests {
    private static let limits = "frame_bytes: 1MiB\nitem_bytes: 256KiB\nsession_bytes: 4MiB\nbuffer_bytes: 32MiB"

    @Test func costOthersNothing() throws {
        var configuration = ChangesTests.configuration()
        configuration.limits = Self.limits
        configuration.socket = #"mode: "0666""#
        let daemon = try Daemon(configuration)
        let (writer, follower) = (try daemon.connect(), try daemon.connect())
        let large = "\"" + String(repeating: "x", count: 60_000) + "\""
        for id in 0..<30 { #expect(try writer.create("sqlite", "\(id)", large).result != nil) }
        let before = try daemon.residentBytes
        var cursor = try follower.changes("sqlite", after: "now").cursor
        // Some ask for page after page, some wait.
        let page = Connection.frame(
            Connection.request("collection.changes", Connection.changesParams("sqlite", "start"), id: "1"))
        let idle = try (0..<30).map { _ in try daemon.connect(as: Peer(user: 65534, group: 65534)) }
        for connection in idle.prefix(10) {
            let pages = Array(repeatElement(page, count: 100).joined())
            _ = try connection.sendUntilBlocked(pages, timeout: .milliseconds(20))
        }
        for connection in idle.dropFirst(10) {
            let params = Connection.changesParams("sqlite", cursor, #""wait":300"#)
            for _ in 0..<20 { try connection.sendFrame(Connection.request("collection.changes", params, id: "1")) }
        }
        for number in 0..<100 {
            let params = Connection.changesParams("sqlite", cursor, #""wait":60"#)
            try follower.sendFrame(Connection.request("collection.changes", params, id: "1"))
            #expect(try writer.update("sqlite", "\(number % 30)", large).result != nil)
            let page = try Connection.ChangesPage(follower.receive())
            #expect(page.ids == ["\(number % 30)"])
            cursor = page.cursor
        }
        #expect(try daemon.residentBytes - before < 64 << 20)
        let sessions = try #require(try writer.call("session.list").result?["sessions"]?.elements)
        #expect(sessions.count == 32)
        // What is sent is one reply more than the limit at most.
        #expect(sessions.allSatisfy { $0["heldBytes"]?.integer ?? .max <= 5 << 20 }, "\(sessions.map(\.text))")
        for connection in idle { connection.close() }
        #expect(try daemon.stop() == .exited(0))
    }
}
