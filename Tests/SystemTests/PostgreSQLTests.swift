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
}
