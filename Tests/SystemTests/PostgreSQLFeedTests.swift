import CRUDTestSupport
import Glibc
import Testing

/// Changes of a collection whose server is lost at the worst moment.
@Suite struct PostgreSQLFeedTests {
    private static func daemon(_ relay: Relay, _ isolation: String, changes: String = "true") throws -> Daemon {
        try Daemon(
            Configuration(
                backends: """
                    main: {plugin: postgresql, isolation: \(isolation), options: {connection: "\(relay.connection)"}}
                    """,
                collections: "c: {backend: main, changes: \(changes)}"))
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !condition() {
            guard !deadline.hasPassed else { throw Failure(what) }
            poll(nil, 0, 10)
        }
    }

    /// Of the daemon, so far.
    private func processorSeconds(_ connection: Connection) throws -> Double {
        let text = try connection.call("daemon.metrics").result?["text"]?.string ?? ""
        return try #require(text.firstMatch(of: /process_cpu_seconds_total ([0-9.]+)/).flatMap { Double($0.1) })
    }

    /// The server is lost while removals are being forgotten. Those who follow wait for the daemon to ask again, which
    /// it does soon, and cost it nothing meanwhile.
    @Test(arguments: ["inline", "process"])
    func feedIsBackSoonAfterATrimWasLost(isolation: String) throws {
        let server = try PostgreSQLServer()
        let relay = try Relay(to: server)
        defer { relay.end() }
        // It looks for what can be forgotten every thirty seconds.
        let daemon = try Self.daemon(relay, isolation, changes: "{retention: 300s}")
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        var cursor = try connection.changes("c", after: "start").cursor
        relay.inject(.holdFrom(#"FROM "crudd"."crudd_history""#))
        try wait("the server is lost") { try connection.backend("main")?["state"]?.string == "down" }
        relay.letPass()
        try wait("a write") { try connection.upsert("c", "b", "1").result != nil }
        let processorTime = try processorSeconds(connection)
        var ids: Set<String> = []
        try wait("the change") {
            let reply = try connection.call("collection.changes", Connection.changesParams("c", cursor))
            if reply.error?.name == "unavailable" {
                poll(nil, 0, 50)
                return false
            }
            let page = try Connection.ChangesPage(reply)
            cursor = page.cursor
            ids.formUnion(page.ids)
            return ids.contains("b")
        }
        #expect(try processorSeconds(connection) - processorTime < 3)
        #expect(try server.query("SELECT count(*) FROM crudd.c") == "2")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// The news of the commit that removes what has expired is lost.
    @Test(arguments: ["inline", "process"])
    func expiryWhoseCommitWasLostIsAChange(isolation: String) throws {
        let server = try PostgreSQLServer()
        let relay = try Relay(to: server)
        defer { relay.end() }
        let daemon = try Self.daemon(relay, isolation)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "b", "1").result != nil)
        var cursor = try connection.changes("c").cursor
        let created = try connection.call(
            "record.create", Connection.params("c", "a", item: "1", more: ["ttl": "3"]))
        #expect(created.result != nil, "\(created)")
        relay.inject(.afterCommit)
        // Nothing else is written.
        try wait("the removal") {
            let reply = try connection.call("collection.changes", Connection.changesParams("c", cursor, #""wait":1"#))
            if reply.error?.name == "unavailable" {
                poll(nil, 0, 50)
                return false
            }
            let page = try Connection.ChangesPage(reply)
            cursor = page.cursor
            return page.changes.contains { $0["id"]?.string == "a" && $0["deleted"]?.boolean == true }
        }
        #expect(try server.query("SELECT id FROM crudd.c") == "b")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
