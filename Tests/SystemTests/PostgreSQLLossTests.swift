import CRUDTestSupport
import Glibc
import Testing

/// PostgreSQL servers that are killed while a daemon works with them.
@Suite struct PostgreSQLLossTests {
    private static func daemon(_ connection: String, isolation: String = "inline") throws -> Daemon {
        try Daemon(
            Configuration(
                backends: """
                    main: {plugin: postgresql, isolation: \(isolation), options: {connection: "\(connection)"}}
                    other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                    """,
                collections: "other: {backend: other}\n\"*\": {backend: main}"))
    }

    /// How long a request to another backend may take.
    private static let longestForOthers = BuildProducts.areOptimized ? Duration.milliseconds(100) : .seconds(20)

    /// Reads are refused at once, other backends do not notice, and nothing that was acknowledged is lost.
    @Test(arguments: ["inline", "process"])
    func serverIsKilledUnderLoad(isolation: String) throws {
        let server = try PostgreSQLServer()
        let daemon = try Self.daemon(server.connection, isolation: isolation)
        var load = try PostgreSQLLoad(on: daemon, "clients")
        let bystander = try daemon.connect()
        for round in 0..<2 {
            try load.run(atMost: .seconds(60)) { $0.fates[.acknowledged, default: 0] > 200 * (round + 1) }
            load.slowestRead = .zero
            try server.kill()
            for number in 0..<20 {
                try load.run(atMost: .milliseconds(50))
                let begin = ContinuousClock.now
                #expect(try bystander.upsert("other", "\(number)", "1").result != nil)
                #expect(begin.duration(to: .now) < Self.longestForOthers)
            }
            #expect(try bystander.read("clients", "none").error?.name == "unavailable")
            #expect(load.slowestRead < .seconds(20))
            try server.start()
            let start = ContinuousClock.now
            try load.run(atMost: .seconds(60)) { $0.lastAcknowledged.map { $0 > start } ?? false }
            #expect(start.duration(to: .now) < .seconds(50))
        }
        try load.drain()
        let fates = load.fates
        #expect(fates[.acknowledged, default: 0] > 400 && fates[.unavailable, default: 0] > 0, "\(fates)")
        try load.check(daemon.connect())
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// A server that is frozen closes no connection: it is found out by its silence.
    @Test(arguments: ["inline", "process"])
    func serverIsFrozenUnderLoad(isolation: String) throws {
        let server = try PostgreSQLServer()
        let daemon = try Self.daemon(server.connection, isolation: isolation)
        var load = try PostgreSQLLoad(on: daemon, "clients")
        let bystander = try daemon.connect()
        try load.run(atMost: .seconds(60)) { $0.fates[.acknowledged, default: 0] > 100 }
        load.slowestRead = .zero
        let thaw = try server.freeze()
        defer { thaw() }
        let frozenAt = ContinuousClock.now
        var isNoticed = false
        while !isNoticed {
            try #require(frozenAt.duration(to: .now) < .seconds(60), "the server's silence is not noticed")
            try load.run(atMost: .milliseconds(100))
            let begin = ContinuousClock.now
            #expect(try bystander.upsert("other", "a", "1").result != nil)
            #expect(begin.duration(to: .now) < Self.longestForOthers)
            isNoticed = try bystander.backend("main")?["state"]?.string == "down"
        }
        // No request waits for it any more.
        let begin = ContinuousClock.now
        #expect(try bystander.read("clients", "none").error?.name == "unavailable")
        #expect(try bystander.upsert("clients", "new", "1").error?.name == "unavailable")
        #expect(begin.duration(to: .now) < .seconds(20))
        try load.run(atMost: .seconds(1))
        #expect(load.slowestRead < .seconds(30))
        thaw()
        let start = ContinuousClock.now
        try load.run(atMost: .seconds(60)) { $0.lastAcknowledged.map { $0 > start } ?? false }
        #expect(start.duration(to: .now) < .seconds(50))
        try load.drain()
        try load.check(daemon.connect())
        let restarts = try bystander.backend("main")?["restarts"]?.integer
        #expect(restarts == nil || restarts == 0, "the child is not to blame")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Three servers of which the first is killed: the standby that has most takes its place.
    @Test func standbyIsPromoted() throws {
        let cluster = try PostgreSQLCluster()
        let daemon = try Self.daemon(cluster.connection)
        var load = try PostgreSQLLoad(on: daemon, "clients")
        try load.run(atMost: .seconds(60)) { $0.fates[.acknowledged, default: 0] > 300 }
        try cluster[0].kill()
        try load.run(atMost: .milliseconds(200))
        try cluster.promote()
        let start = ContinuousClock.now
        try load.run(atMost: .seconds(60)) { $0.lastAcknowledged.map { $0 > start } ?? false }
        #expect(start.duration(to: .now) < .seconds(50))
        try load.run(atMost: .milliseconds(200))
        try load.drain()
        let fates = load.fates
        #expect(fates[.acknowledged, default: 0] > 300, "\(fates)")
        try load.check(daemon.connect())
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Waits for many times as long as a lease lasts.
    private func awaitWrite(_ item: String, on connection: Connection) throws {
        let deadline = Deadline()
        while try connection.upsert("clients", "a", item).result == nil {
            try #require(!deadline.hasPassed, "no daemon takes over")
            poll(nil, 0, 20)
        }
    }

    /// A frozen daemon loses the schema to another one, and does no harm when it is woken.
    @Test func secondDaemonTakesOver() throws {
        let server = try PostgreSQLServer.shared()
        func start() throws -> Daemon {
            try Daemon(
                Configuration(
                    backends: """
                        main: {plugin: postgresql, options: {connection: "\(server.connection)", schema: takeover}}
                        """))
        }
        let first = try start()
        let connection = try first.connect()
        #expect(try connection.create("clients", "a", "1").result != nil)
        let second = try start()
        let standby = try second.connect()
        #expect(try standby.read("clients", "a").error?.name == "unavailable")
        #expect(try standby.upsert("clients", "a", "0").error?.name == "unavailable")
        #expect(second.log.contains("in use by process \(first.process.pid) of "))

        first.process.signal(SIGSTOP)
        try awaitWrite("2", on: standby)
        first.process.signal(SIGCONT)
        // Its commit may find that its connection has been ended.
        let error = try connection.upsert("clients", "a", "3").error?.name
        #expect(["unavailable", "outcome_unknown"].contains(error), "\(error ?? "no error")")
        let read = try connection.read("clients", "a")
        #expect(read.error?.name == "unavailable" || read.result?["item"]?.text == "2", "\(read)")
        #expect(try standby.item("clients", "a") == "2")
        #expect(first.log.contains("taken the schema over"))
        // It stands by from then on.
        try second.kill()
        try awaitWrite("4", on: connection)
        // One that was killed on this machine is not waited for.
        try first.kill()
        let third = try start()
        #expect(try third.connect().item("clients", "a") == "4")
        #expect(try third.stop() == .exited(0), "\(third.log)")
    }
}
