import CRUDTestSupport
import Testing

/// How many sessions there may be.
@Suite struct SessionLimitTests {
    private static let nobody = Peer(user: 65534, group: 65534)
    private static let other = Peer(user: 1, group: 1)

    @Test(arguments: [1, 4])
    func aThousandSessionsAreServedAndOneTooManyIsNot(loops: Int) throws {
        try Descriptor.raiseLimit()
        let daemon = try Daemon(Configuration(limits: "sessions_per_user: 2000", loops: loops))
        #expect(try daemon.connect().upsert("c", "a", "0").result != nil)
        #expect(try daemon.connect().item("c", "a") == "0")
        let descriptors = try daemon.descriptorCount
        // The user of the daemon is an admin: eight more are kept free.
        var sessions = try (0..<1032).map { _ in try daemon.connect() }
        for session in sessions { try session.sendFrame(Connection.request("daemon.ping", id: "1")) }
        for session in sessions { #expect(try session.receive().result?.text == "{}") }
        try expectRefusal(try daemon.connect(), limit: "sessions", maximum: 1024)
        for session in sessions {
            try session.sendFrame(
                Connection.request("record.upsert", Connection.params("c", "a", item: "1"), id: "1"))
        }
        for session in sessions { #expect(try session.receive().result != nil) }

        sessions.removeFirst().close()
        let witness = sessions[0]
        _ = try eventually(daemon)
        while sessions.count > 1 { sessions.removeLast().close() }
        let deadline = Deadline()
        // Some more than before: storage may have opened files of its own meanwhile.
        while try daemon.descriptorCount > descriptors + 32 {
            try #require(!deadline.hasPassed, "the daemon keeps descriptors of sessions that have ended")
            #expect(try witness.isUsable())
        }
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as other users"), arguments: [1, 2, 4])
    func eightAreKeptFreeForAdmins(loops: Int) throws {
        let daemon = try Daemon(Configuration(socket: #"mode: "0666""#, limits: "sessions: 3", loops: loops))
        let others = try (0..<3).map { _ in try daemon.connect(as: Self.nobody) }
        for session in others { #expect(try session.isUsable()) }
        try expectRefusal(daemon.connect(as: Self.other), limit: "sessions", maximum: 3)
        let admins = try (0..<8).map { _ in try daemon.connect() }
        for session in admins { #expect(try session.isUsable()) }
        try expectRefusal(daemon.connect(), limit: "sessions", maximum: 3)
        for session in others + admins { #expect(try session.isUsable()) }
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as other users"), arguments: [1, 2, 4])
    func aUserHasSoManyAndOthersAreNotTouched(loops: Int) throws {
        let daemon = try Daemon(Configuration(socket: #"mode: "0666""#, limits: "sessions_per_user: 2", loops: loops))
        let sessions = try (0..<2).map { _ in try daemon.connect(as: Self.nobody) }
        for session in sessions { #expect(try session.isUsable()) }
        try expectRefusal(
            daemon.connect(as: Self.nobody), limit: "sessions_per_user", maximum: 2)
        #expect(try daemon.connect(as: Self.other).isUsable())
        #expect(try daemon.connect().isUsable())
        for session in sessions { #expect(try session.isUsable()) }
    }

    /// A new session once the daemon has noticed that another has gone.
    private func eventually(_ daemon: Daemon) throws -> Connection {
        let deadline = Deadline()
        while true {
            let connection = try daemon.connect()
            try connection.sendFrame(Connection.request("daemon.ping", id: "1"))
            if try connection.receive().result != nil { return connection }
            try #require(!deadline.hasPassed, "a session that has ended still counts")
        }
    }

    private func expectRefusal(_ connection: Connection, limit: String, maximum: Int) throws {
        let reply = try connection.receive()
        #expect(reply.id.isNull)
        #expect(reply.error?.name == "limit_exceeded")
        #expect(reply.error?.details?["limit"]?.string == limit)
        #expect(reply.error?.details?["maximum"]?.integer == maximum)
        #expect(try connection.receiveFrame() == nil)
    }
}
