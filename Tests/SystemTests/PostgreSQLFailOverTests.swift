import CRUDTestSupport
import Glibc
import Testing

/// Primaries that do not replicate what they commit, and primaries of the past.
@Suite struct PostgreSQLFailOverTests {
    private static func daemon(_ connection: String, _ options: String = "") throws -> Daemon {
        try Daemon(
            Configuration(
                backends: #"main: {plugin: postgresql, options: {connection: "\#(connection)"\#(options)}}"#))
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !condition() {
            guard !deadline.hasPassed else { throw Failure("\(what): not within \(Deadline.timeout)") }
            poll(nil, 0, 20)
        }
    }

    struct Loss: Sendable, CustomTestStringConvertible {
        let function: String
        let isShared: Bool
        var testDescription: String { "\(function)\(isShared ? ", shared" : "")" }
    }

    /// A commit whose wait for its standby has ended is visible. It is neither acknowledged nor shown before a later
    /// one has proved that it is replicated.
    @Test(arguments: [
        Loss(function: "pg_terminate_backend", isShared: false), Loss(function: "pg_cancel_backend", isShared: false),
        Loss(function: "pg_terminate_backend", isShared: true), Loss(function: "pg_cancel_backend", isShared: true),
    ])
    func unconfirmedCommitIsNeitherAcknowledgedNorShown(loss: Loss) throws {
        let cluster = try PostgreSQLCluster(standbys: 1)
        let daemon = try Self.daemon(cluster.connection, loss.isShared ? ", shared: true" : "")
        let (writer, reader) = (try daemon.connect(), try daemon.connect())
        #expect(try writer.upsert("c", "a", "1").result != nil)
        try cluster[1].stop()
        try writer.sendFrame(Connection.request("record.upsert", Connection.params("c", "a", item: "2"), id: "1"))
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        try wait("the commit waits") { try cluster[0].query("SELECT count(*) > 0 \(waiting)") == "t" }
        var reply: Reply?
        var shown: Set<String> = []
        try wait("a reply") {
            _ = try cluster[0].query("SELECT \(loss.function)(pid) \(waiting)")
            let read = try reader.read("c", "a")
            shown.insert(read.result?["item"]?.text ?? read.error?.name ?? "")
            poll(nil, 0, 20)
            try writer.takeIn()
            reply = try writer.bufferedFrame().map { try Reply(JSON(parsing: $0)) }
            return reply != nil
        }
        #expect(reply?.error?.name == "outcome_unknown", "\(reply.map { "\($0)" } ?? "")")
        if loss.function == "pg_cancel_backend" {
            let warning = "canceling wait for synchronous replication due to user request (SQLSTATE 01000)"
            try wait("the server's words") { daemon.log.contains("with a warning: \(warning)") }
        }
        for _ in 0..<20 {
            _ = try cluster[0].query("SELECT \(loss.function)(pid) \(waiting)")
            let read = try reader.read("c", "a")
            shown.insert(read.result?["item"]?.text ?? read.error?.name ?? "")
        }
        #expect(shown.isSubset(of: ["1", "unavailable"]), "\(shown)")
        #expect(try cluster[0].query("SELECT item FROM crudd.c") == "2", "it is visible")
        // The standby gets all of it, and so proves it.
        try cluster.start(1, following: 0)
        try wait("a write") { try writer.upsert("c", "b", "1").result != nil }
        #expect(try reader.item("c", "a") == "2")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Of a transaction that an administrator has ended while it waited for its standby nothing is shown before the
    /// daemon has heard of that, in whatever way it is asked for.
    @Test(arguments: [false, true]) func whatIsNotYetKnownIsNotShown(isShared: Bool) throws {
        // On a busy machine the backend may be down before anything is read.
        let haveWaited = try (0..<5).contains { _ in try readersWaited(isShared: isShared) }
        #expect(haveWaited)
    }

    /// - Returns: whether a reader had to wait for the outcome.
    private func readersWaited(isShared: Bool) throws -> Bool {
        let cluster = try PostgreSQLCluster(standbys: 1)
        let held = try HeldWriter(before: cluster[0])
        let daemon = try Self.daemon(held.connection, isShared ? ", shared: true" : "")
        let writer = try daemon.connect()
        for id in ["a", "b", "c"] { #expect(try writer.upsert("c", id, "1").result != nil) }
        // Each on a connection of its own, and what it was before.
        let requests = [
            ("record.read", Connection.params("c", "d"), "record_not_found"),
            ("record.read", Connection.params("c", "a"), #""item":1"#),
            ("record.read", Connection.params("c", "b"), #""item":1"#),
            ("record.readMany", #"{"collection":"c","ids":["c","b"]}"#, #""id":"b","item":1"#),
            ("record.query", #"{"collection":"c"}"#, #""id":"b","item":1"#),
            ("record.count", #"{"collection":"c"}"#, #""count":3"#),
        ]
        let readers = try requests.map { _ in try daemon.connect() }
        try cluster[1].stop()
        try held.hold()
        let operations = """
            [{"op":"update","collection":"c","id":"a","item":2},{"op":"delete","collection":"c","id":"b"},
            {"op":"create","collection":"c","id":"d","item":2}]
            """
        try writer.sendFrame(Connection.request("record.batch", #"{"operations":\#(operations)}"#, id: "1"))
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"
        try wait("the commit waits") { try cluster[0].query("SELECT count(*) = 1 \(waiting)") == "t" }
        _ = try cluster[0].query("SELECT pg_terminate_backend(pid) \(waiting)")
        try wait("it is visible") { try cluster[0].query("SELECT count(*) FROM crudd.c WHERE item::text = '2'") == "2" }
        for (reader, request) in zip(readers, requests) {
            try reader.sendFrame(Connection.request(request.0, request.1, id: "1"))
        }
        poll(nil, 0, 300)
        let hasWaited = try !readers[0].hasSomethingToRead()
        held.release()
        for (reader, request) in zip(readers, requests) {
            let reply = try reader.receive()
            let text = "\(reply)"
            let isAsBefore = text.contains(request.2) && !text.contains(#""item":2"#)
            #expect(reply.error?.name == "unavailable" || isAsBefore, "\(request): \(reply)")
        }
        let results = try writer.receive().result?["results"]?.elements
        #expect(results?.map { $0["error"]?["data"]?["name"]?.string } == Array(repeating: "outcome_unknown", count: 3))
        try cluster.start(1, following: 0)
        try wait("a write") { try writer.upsert("c", "e", "1").result != nil }
        #expect(try writer.item("c", "a") == "2" && writer.item("c", "b") == nil)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        return hasWaited
    }

    /// A primary that was frozen while its standby was promoted keeps its connections.
    @Test(arguments: ["", ", shared: true"])
    func connectionsToAPrimaryOfThePastAreNotUsed(option: String) throws {
        let cluster = try PostgreSQLCluster(standbys: 1, isSynchronous: false)
        let daemon = try Self.daemon(cluster.connection, option)
        let connection = try daemon.connect()
        for id in 0..<8 { #expect(try connection.upsert("c", "\(id)", "0").result != nil) }
        for id in 0..<8 { #expect(try connection.item("c", "\(id)") == "0") }
        try cluster.waitFor(1, "SELECT count(*) FROM crudd.c", is: "8")
        let thaw = try cluster[0].freeze()
        defer { thaw() }
        func isState(_ state: String) throws -> Bool { try connection.backend("main")?["state"]?.string == state }
        try wait("down") { try isState("down") }
        try cluster.promote(1)
        try wait("ready") { try isState("ready") }
        thaw()
        for id in 0..<20 { #expect(try connection.upsert("c", "\(id)", "1").result != nil) }
        #expect(try cluster[1].query("SELECT count(*) FROM crudd.c WHERE item::text = '1'") == "20")
        #expect(try cluster[0].query("SELECT count(*) FROM crudd.c WHERE item::text = '1'") == "0")
        for id in 0..<20 { #expect(try connection.item("c", "\(id)") == "1") }
        #expect(
            daemon.log.contains(/fail-over to server .*, port 5433 \(timeline 2\) from .*, port 5432 \(timeline 1\)/))
        // Nor is it taken back when its successor is lost.
        try cluster[1].kill()
        try wait("the old primary is refused") {
            daemon.log.contains("port 5432 is refused: it is on timeline 1, and timeline 2 has been seen")
        }
        #expect(try connection.upsert("c", "a", "1").error?.name == "unavailable")
        #expect(try cluster[0].query("SELECT count(*) FROM crudd.c") == "8")
        try cluster[1].start()
        try wait("its successor is back") { try connection.upsert("c", "a", "1").result != nil }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// An outage of more than ten seconds, after which the plugin has been opened again: the line of the log, what the
    /// administrator sees, and a metric say which server is used, and why.
    @Test func failOverIsTold() throws {
        let cluster = try PostgreSQLCluster(standbys: 1, isSynchronous: false)
        let daemon = try Self.daemon(cluster.connection)
        let connection = try daemon.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(daemon.log.contains(/connected to server .*, port 5432 \(timeline 1\)/))
        func metric() throws -> Bool {
            let text = try connection.call("daemon.metrics").result?["text"]?.string ?? ""
            return text.contains(#"crudd_backend_notice{backend="main"} 1"#)
        }
        #expect(try !metric())
        try cluster.waitFor(1, "SELECT count(*) FROM crudd.c", is: "1")
        try cluster[0].kill()
        try wait("the storage is closed") { daemon.log.contains("is opened again") }
        try cluster.promote(1)
        try wait("a write") { try connection.upsert("c", "a", "2").result != nil }
        let line = /fail-over to server .*, port 5433 \(timeline 2\) from .*, port 5432 \(timeline 1\): (.*)/
        let cause = try #require(daemon.log.firstMatch(of: line)).1
        #expect(!cause.contains("opened"), "why the old one was left: \(cause)")
        #expect(try connection.backend("main")?["notice"]?.string?.contains(line) == true)
        let status = try connection.call("daemon.status").result
        #expect(status?["notices"]?["main"]?.string?.contains(line) == true, "\(status.map { "\($0)" } ?? "")")
        #expect(try metric())
        // It is taken back when the server is lost again.
        try cluster[1].kill()
        try wait("down") { try connection.backend("main")?["state"]?.string == "down" }
        #expect(try !metric())
    }

    /// A write whose outcome remained unknown does not end the cache.
    @Test func recordsAreCachedAgainAfterAnUnknownOutcome() throws {
        let cluster = try PostgreSQLCluster(standbys: 1)
        let daemon = try Self.daemon(cluster.connection)
        let connection = try daemon.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        try cluster[1].stop()
        #expect(try connection.upsert("c", "a", "2").error?.name == "outcome_unknown")
        try cluster.start(1, following: 0)
        try wait("a write") { try connection.upsert("c", "b", "1").result != nil }
        func hits() throws -> Int { try connection.call("daemon.status").result?["cache"]?["hits"]?.integer ?? 0 }
        let before = try hits()
        for _ in 0..<5 { #expect(try connection.item("c", "a") == "2") }
        #expect(try hits() >= before + 4)
    }

    /// A host that is off costs none of the time that the others have.
    @Test func hostThatDoesNotReplyCostsLittle() throws {
        let server = try PostgreSQLServer()
        let directory = try TemporaryDirectory()
        let silent = try Descriptor.listener(at: "\(directory.path)/.s.PGSQL.5432")
        defer { _ = silent }
        let hosts = "host=\(directory.path),\(server.directory.path) port=5432,\(server.port)"
        // Of the rounds the shortest times: a busy machine delays any of them.
        var (opening, reopening) = (Duration.seconds(3600), Duration.seconds(3600))
        for _ in 0..<5 where max(opening, reopening) >= .seconds(5) {
            let start = ContinuousClock.now
            let daemon = try Self.daemon("\(hosts) dbname=postgres user=crudd", ", readers: 1")
            let connection = try daemon.connect()
            try wait("a write") { try connection.upsert("c", "a", "1").result != nil }
            #expect(try connection.read("c", "none").error?.name == "record_not_found")
            opening = min(opening, start.duration(to: .now))
            // Of the keeper, the writer and the reader.
            let loss = ContinuousClock.now
            let sessions = "pg_stat_activity WHERE application_name = 'crudd'"
            _ = try server.query("SELECT pg_terminate_backend(pid) FROM \(sessions)")
            try wait("a write") { try connection.upsert("c", "a", "2").result != nil }
            reopening = min(reopening, loss.duration(to: .now))
            #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        }
        #expect(opening < .seconds(5))
        #expect(reopening < .seconds(5))
    }

    /// The schema is not in use by the daemon that wants to open it.
    @Test func ownOlderLeaseIsNotWaitedFor() throws {
        let server = try PostgreSQLServer()
        let daemon = try Self.daemon(server.connection)
        let connection = try daemon.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        // It lasts longer than the outage. The daemon, which would renew it for ten seconds, is stopped until then.
        daemon.process.signal(SIGSTOP)
        #expect(try server.query("UPDATE crudd.crudd_lease SET expires_at = now() + interval '1 day'") != nil)
        try server.kill()
        daemon.process.signal(SIGCONT)
        try wait("the storage is closed") { daemon.log.contains("is opened again") }
        try server.start()
        try wait("a write") { try connection.upsert("c", "a", "2").result != nil }
        #expect(!daemon.log.contains("in use by"))
    }
}
