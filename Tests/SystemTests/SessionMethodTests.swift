import CRUDTestSupport
import Testing

/// `session.list` and `session.close`.
@Suite struct SessionMethodTests {
    private static func list(_ connection: Connection) throws -> [JSON] {
        try #require(try connection.call("session.list").result?["sessions"]?.elements)
    }

    @Test(arguments: [1, 3])
    func everySessionIsListed(loops: Int) throws {
        let daemon = try Daemon(Configuration(socket: #"mode: "0666""#, loops: loops))
        let first = try daemon.connect()
        #expect(try first.call("session.hello", #"{"client":"näme \u0007"}"#).result != nil)
        let others = try (0..<4).map { _ in
            try daemon.connect(as: Peer.canImpersonate ? Peer(user: 65534, group: 65534) : nil)
        }
        for other in others { #expect(try other.upsert("c", "a", "1").result != nil) }
        let sessions = try Self.list(first)
        #expect(sessions.count == 5)
        for session in sessions {
            #expect(
                session.members?.map(\.name) == [
                    "id", "uid", "user", "client", "connectedAt", "inflight", "followers", "requests", "receivedBytes",
                    "sentBytes", "heldBytes",
                ])
            #expect(session["receivedBytes"]?.integer ?? 0 > 40)
            #expect(session["connectedAt"]?.integer ?? 0 > 1_700_000_000_000)
        }
        let own = try #require(sessions.first)
        #expect(own["client"]?.string == "näme \u{7}")
        #expect(own["uid"]?.integer == Int(Peer.own.user) && own["user"]?.string == Peer.ownName)
        #expect(own["requests"]?.integer == 2 && own["inflight"]?.integer == 1)
        #expect(sessions[1]["client"]?.string == "" && sessions[1]["inflight"]?.integer == 0)
        if Peer.canImpersonate { #expect(sessions[1]["user"]?.string == "nobody") }
        #expect(Set(sessions.compactMap { $0["id"]?.integer }).count == 5)
    }

    @Test(arguments: [1, 3])
    func aSessionIsClosedAfterItsReplies(loops: Int) throws {
        let daemon = try Daemon(Configuration(loops: loops))
        let admin = try daemon.connect()
        #expect(try admin.call("daemon.ping").result != nil, "it is the first session")
        let other = try daemon.connect()
        #expect(try other.upsert("c", "a", "1").result != nil)
        let session = try #require(try Self.list(admin).last?["id"]?.integer)
        #expect(try admin.call("session.close", #"{"session":\#(session)}"#).result?.text == "{}")
        #expect(try other.receiveFrame() == nil, "the daemon has closed it")
        #expect(try Self.list(admin).count == 1)
        let error = try admin.call("session.close", #"{"session":\#(session)}"#).error
        #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "session")
        for invalid in ["0", "-1", "1.5", "\"1\"", "99999999999999999999"] {
            #expect(try admin.call("session.close", #"{"session":\#(invalid)}"#).error?.name == "invalid_params")
        }
        let tooLong = try admin.call("session.close", #"{"session":9223372036854775808}"#)
        #expect(tooLong.json["error"]?["message"]?.string == "`session` must be an integer of 64 bits")
    }

    @Test func oneCanCloseOneself() throws {
        let connection = try Daemon().connect()
        let own = try #require(try Self.list(connection).first?["id"]?.integer)
        #expect(try connection.call("session.close", #"{"session":\#(own)}"#).result?.text == "{}")
        #expect(try connection.receiveFrame() == nil)
    }

    /// It reads nothing, so its replies are never sent.
    @Test func whoDoesNotReadIsClosedAllTheSame() throws {
        let daemon = try Daemon()
        let admin = try daemon.connect()
        #expect(try admin.call("daemon.ping").result != nil, "it is the first session")
        let stuck = try daemon.connect()
        let item = #""\#(String(repeating: "x", count: 1 << 20))""#
        #expect(try stuck.upsert("c", "a", item).result != nil)
        let read = Connection.frame(Connection.request("record.read", Connection.params("c", "a"), id: "1"))
        try stuck.send(Array(repeating: read, count: 8).joined())
        let session = try #require(try Self.list(admin).last?["id"]?.integer)
        #expect(try admin.call("session.close", #"{"session":\#(session)}"#).result != nil)
        let deadline = Deadline()
        while try Self.list(admin).count > 1 { try #require(!deadline.hasPassed, "it stays") }
    }

    /// Refused and denied peers are logged, and not more often than is useful.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as other users"))
    func refusalsAndDenialsAreLoggedWithinBounds() throws {
        let daemon = try Daemon(
            Configuration(
                socket: #"mode: "0666""#, access: "- {users: [root], allow: [read, write]}",
                limits: "sessions_per_user: 1", loops: 1))
        let nobody = Peer(user: 65534, group: 65534)
        let denied = try daemon.connect(as: nobody)
        for _ in 0..<100 {
            #expect(try denied.call("record.read", Connection.params("c", "a")).error?.name == "permission_denied")
        }
        for _ in 0..<100 { #expect(try daemon.connect(as: nobody).receive().error?.name == "limit_exceeded") }
        let lines = daemon.log.split(separator: "\n")
        let denials = lines.filter { $0.contains(#"record.read on collection "c" is denied by the access rules"#) }
        let refusals = lines.filter {
            $0.contains("a connection of uid 65534 is refused: there are too many sessions of this user")
        }
        #expect((20..<100).contains(denials.count) && denials[0].contains("uid 65534"))
        #expect((20..<100).contains(refusals.count))
    }

    /// Each operation of a batch; once, although the batch waits for the request before it.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as other users"), arguments: [false, true])
    func denialsWithinABatchAreLogged(isAtomic: Bool) throws {
        let daemon = try Daemon(
            Configuration(
                socket: #"mode: "0666""#,
                access: "- {collections: [mine], allow: [read, write]}\n- {collections: [theirs], allow: [read]}"))
        let connection = try daemon.connect(as: Peer(user: 65534, group: 65534))
        let operations = [
            #"{"op":"upsert","collection":"mine","id":"a","item":1}"#,
            #"{"op":"delete","collection":"theirs","id":"secret"}"#,
            #"{"op":"check","collection":"theirs","id":"secret","ifRevision":null}"#,
        ]
        let params = #"{"operations":[\#(operations.joined(separator: ","))],"atomic":\#(isAtomic)}"#
        let replies = try connection.pipeline([
            ("record.upsert", Connection.params("mine", "b", item: "1")), ("record.batch", params),
        ])
        let outcomes = replies[1].result?["results"]?.elements
        let error = isAtomic ? replies[1].error?.name : outcomes?[1]["error"]?["data"]?["name"]?.string
        #expect(error == "permission_denied")
        let denials = daemon.log.split(separator: "\n").filter { $0.contains("is denied") }
        #expect(denials.count == 1, "\(denials)")
        let text = #"of uid 65534: record.batch: delete on collection "theirs" is denied by the access rules"#
        #expect(denials.first?.hasSuffix(text) == true)
    }
}
