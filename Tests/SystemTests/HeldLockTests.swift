import CRUDTestSupport
import Glibc
import Testing

/// What an administrator does while another program has locked a record in PostgreSQL, and a client waits to write it.
@Suite struct HeldLockTests {
    private static func configuration(_ schema: String, _ indexes: String = "") throws -> Configuration {
        let server = try PostgreSQLServer.shared()
        return Configuration(
            backends: """
                main: {plugin: postgresql, options: {connection: "\(server.connection)", schema: \(schema)}}
                """, collections: "c: {backend: main, indexes: [\(indexes)]}\nd: {backend: main}")
    }

    /// A session of another program that has locked the record `a` of the collection `c`.
    private struct Session {
        private let server: PostgreSQLServer
        private let process: ChildProcess
        private let condition: String

        init(_ schema: String) throws {
            server = try PostgreSQLServer.shared()
            let lock = "BEGIN; SELECT id FROM \(schema).c WHERE id = 'a' FOR UPDATE; SELECT pg_sleep(600)"
            process = try ChildProcess("psql", ["-X", "-q", "-d", server.connection, "-c", lock], descriptors: [])
            condition = "FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT id FROM \(schema).c%'"
            let deadline = Deadline()
            while try server.query("SELECT count(*) \(condition) AND wait_event = 'PgSleep'") != "1" {
                try #require(!deadline.hasPassed, "the record is not locked")
                poll(nil, 0, 5)
            }
        }

        func end() throws {
            #expect(try server.query("SELECT pg_terminate_backend(pid) \(condition)") != nil)
            try process.waitForExit()
        }
    }

    private static func fill(_ connection: Connection) throws {
        for name in ["c", "d"] {
            for id in ["a", "b"] { #expect(try connection.create(name, id, #"{"n":1}"#).result != nil) }
        }
    }

    /// Has a client wait to write the record that is locked.
    private static func beginUpdate(_ daemon: Daemon) throws -> Connection {
        let writer = try daemon.connect()
        let params = Connection.params("c", "a", item: #"{"n":2}"#)
        try writer.sendFrame(Connection.request("record.update", params, id: "1"))
        #expect(try daemon.connect().isUsable())
        return writer
    }

    /// A drop is recorded or refused: what is recorded is not served again and goes once the lock has gone, what is
    /// refused has changed nothing.
    @Test func aDropBesideALockedRecord() throws {
        let daemon = try Daemon(Self.configuration("held_drop"))
        let connection = try daemon.connect()
        try Self.fill(connection)
        let session = try Session("held_drop")
        let writer = try Self.beginUpdate(daemon)
        let reply = try connection.call("collection.drop", #"{"collection":"c"}"#)
        let update = try writer.receive()
        #expect(update.result == nil, "\(update)")
        let isDropped = reply.result?["dropped"]?.boolean == true
        #expect(isDropped || reply.error?.name == "unavailable", "\(reply)")
        if isDropped {
            #expect(reply.result?["removing"]?.elements?.count == 1, "\(reply)")
            #expect(try connection.create("c", "new", "1").error?.name == "unavailable")
        }
        // Another collection of the same backend waits for it a while, and no longer.
        #expect(try connection.item("d", "a") == #"{"n":1}"#)

        try session.end()
        if !isDropped {
            #expect(try connection.item("c", "a") == #"{"n":1}"#)
            #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).result != nil)
        }
        let deadline = Deadline()
        while try connection.call("daemon.status").result?["removals"]?.elements?.isEmpty != true {
            try #require(!deadline.hasPassed)
            poll(nil, 0, 5)
        }
        #expect(try connection.item("c", "a") == nil && connection.item("c", "b") == nil)
        #expect(try connection.create("c", "new", "1").result != nil)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        let again = try Daemon(on: daemon.installation)
        let other = try again.connect()
        #expect(try other.item("c", "new") == "1" && other.item("c", "a") == nil)
        #expect(try again.stop() == .exited(0))
    }

    /// A reload that adds an index: it is there once the lock has gone, and finds what was written since.
    @Test func aReloadBesideALockedRecord() throws {
        let daemon = try Daemon(Self.configuration("held_reload"))
        let connection = try daemon.connect()
        try Self.fill(connection)
        let session = try Session("held_reload")
        let writer = try Self.beginUpdate(daemon)
        try daemon.installation.configure(Self.configuration("held_reload", "n"))
        let reply = try connection.call("daemon.reload")
        #expect(reply.result != nil || reply.error?.name == "unavailable", "\(reply)")
        let update = try writer.receive()
        #expect(update.error?.name == "unavailable", "\(update)")
        #expect(try connection.item("d", "a") == #"{"n":1}"#)
        #expect(try connection.item("c", "a") == #"{"n":1}"#)

        try session.end()
        if reply.result == nil { #expect(try !connection.reload().isEmpty) }
        #expect(try connection.update("c", "a", #"{"n":2}"#).result != nil)
        let deadline = Deadline()
        for (number, ids) in [(1, ["b"]), (2, ["a"])] {
            let filter = #"{"op":"=","args":[{"property":"n"},\#(number)]}"#
            while true {
                let found = try connection.call(
                    "record.query", #"{"collection":"c","filter":\#(filter),"explain":true}"#)
                #expect(found.result?["records"]?.elements?.compactMap { $0["id"]?.string } == ids, "\(found)")
                if found.result?["plan"]?["index"]?.string == "n" { break }
                try #require(!deadline.hasPassed, "the index is not made: \(found)")
                poll(nil, 0, 5)
            }
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
