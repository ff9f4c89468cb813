import CRUDTestSupport
import Testing

/// Collections in a PostgreSQL database.
@Suite struct PostgreSQLTests {
    @Test func recordsAreRowsOfATable() throws {
        let server = try PostgreSQLServer.shared()
        let daemon = try Daemon(
            Configuration(
                backends: """
                    main: {plugin: postgresql, options: {connection: "\(server.connection)", schema: rows}}
                    """))
        let connection = try daemon.connect()
        #expect(try connection.create("Clients Database", "a", #"{"name":"Anna"}"#).result != nil)
        #expect(try connection.item("Clients Database", "a") == #"{"name":"Anna"}"#)
        #expect(try server.query(#"SELECT id, item FROM rows."Clients Database""#) == #"a|{"name":"Anna"}"#)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// What the lease is for: no other daemon writes. What is changed by SQL shows where the backend is not cached.
    @Test(arguments: [("inline", "false", 2), ("inline", "true", 0), ("process", "false", 0)])
    func recordsOfAnOwnedSchemaAreCached(isolation: String, isShared: String, hits: Int) throws {
        let server = try PostgreSQLServer.shared()
        let schema = "cached \(isolation) \(isShared)"
        let options = #"connection: "\#(server.connection)", schema: \#(schema), shared: \#(isShared)"#
        let daemon = try Daemon(
            Configuration(backends: "main: {plugin: postgresql, isolation: \(isolation), options: {\(options)}}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        for _ in 0..<3 { #expect(try connection.item("c", "a") == "1") }
        #expect(try connection.call("daemon.status").result?["cache"]?["hits"]?.integer == hits)
        #expect(try connection.upsert("c", "a", "2").result != nil)
        #expect(try connection.item("c", "a") == "2")
        guard isolation == "process" else { return }
        for page in ["Plugins/PostgreSQL/README.md", "etc/README.md"] {
            let text = String(decoding: try Files.read("\(BuildProducts.packageDirectory)/\(page)"), as: UTF8.self)
            let saysSo = text.contains(/[Ii]n a child process (they are not cached|also `postgresql`)/)
            #expect(saysSo, "\(page)")
        }
    }

    /// The commands of the adapter's page.
    @Test func documentedCommandsShowRecords() throws {
        let server = try PostgreSQLServer.shared()
        #expect(try server.query("CREATE DATABASE app") != nil)
        let place = "host=\(server.directory.path) port=\(server.port) user=crudd"
        let daemon = try Daemon(
            Configuration(backends: "main: {plugin: postgresql, options: {connection: \"\(place) dbname=app\"}}"))
        #expect(try daemon.connect().create("clients", "ada", #"{"city":"Bonn"}"#).result != nil)
        let file = "\(BuildProducts.packageDirectory)/Plugins/PostgreSQL/README.md"
        let page = String(decoding: try Files.read(file), as: UTF8.self)
        let commands = page.split(separator: "\n").filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
        #expect(commands.count == 2)
        for command in commands {
            let variables = ["PGHOST": server.directory.path, "PGPORT": "\(server.port)", "PGUSER": "crudd"]
            let outcome = try Command.run("bash", ["-c", command], environment: variables)
            #expect(outcome.status == .exited(0) && outcome.output.contains("ada"), "\(outcome)")
        }
    }

    /// Rows that SQL has copied with everything in them, their sequence numbers included.
    @Test(arguments: ["inline", "process"])
    func copiedRowsAreServed(isolation: String) throws {
        let server = try PostgreSQLServer.shared()
        let options = #"{connection: "\#(server.connection)", schema: copied \#(isolation)}"#
        var daemon = try Daemon(
            Configuration(
                backends: "main: {plugin: postgresql, isolation: \(isolation), options: \(options)}",
                collections: "c: {backend: main, changes: {retention: 1s}}"))
        var connection = try daemon.connect()
        for id in ["a", "b", "d"] { #expect(try connection.create("c", id, "1").result != nil) }
        let table = #""copied \#(isolation)".c"#
        let columns = "revision, item, expires_at, sequence"
        let copy = "INSERT INTO \(table) (id, \(columns)) SELECT 'copy of ' || id, \(columns) FROM \(table)"
        #expect(try server.query(copy) != nil)
        let deadline = Deadline()
        while !daemon.log.contains("3 rows of table c had the sequence numbers of others") {
            let page = try connection.changes("c")
            #expect(page.ids.count == 3, "one for each number")
            try #require(!deadline.hasPassed)
        }
        #expect(try connection.item("c", "copy of a") == "1")
        #expect(try connection.backend("main")?["restarts"]?.integer ?? 0 == 0, "nor is the child killed for it")
        // A start numbers them; so does the daemon, every minute.
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        var ids: Set<String> = []
        while ids.count < 6 {
            ids.formUnion(try connection.changes("c", after: "start").ids)
            try #require(!deadline.hasPassed, "\(ids)")
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// What is changed by SQL shows at once where the backend is not cached.
    @Test func rowsThatSQLChangesShowWithoutACache() throws {
        let server = try PostgreSQLServer.shared()
        let options = #"{connection: "\#(server.connection)", schema: edited}"#
        let daemon = try Daemon(
            Configuration(backends: "main: {plugin: postgresql, cache: false, options: \(options)}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.item("c", "a") == "1")
        _ = try server.query("UPDATE edited.c SET item = '2', revision = 'by-hand'")
        #expect(try connection.item("c", "a") == "2")
    }
}
