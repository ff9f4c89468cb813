import CRUDTestSupport
import Glibc
import Testing

/// Tables that the server does not let be changed as the configuration wants.
@Suite struct PostgreSQLTableTests {
    /// Has a database refuse indexes until that is dropped.
    private static let refusal = """
        CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no index here' USING ERRCODE = '42501'; END $$;
        CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse()
        """

    private func wait<Value>(_ what: String, for value: () throws -> Value?) throws -> Value {
        let deadline = Deadline()
        while true {
            if let value = try value() { return value }
            guard !deadline.hasPassed else { throw Failure(what) }
            poll(nil, 0, 20)
        }
    }

    private static func find(_ connection: Connection) throws -> (count: Int?, index: String?) {
        let filter = #"{"op":"=","args":[{"property":"n"},1]}"#
        let result = try connection.query("c", #"{"filter":\#(filter),"explain":true}"#).result
        return (result?["records"]?.elements?.count, result?["plan"]?["index"]?.string)
    }

    /// The collection serves without the index, and an administrator is told why, in the log once.
    @Test(arguments: ["inline", "process"])
    func reasonOfAMissingIndexIsTold(isolation: String) throws {
        let server = try PostgreSQLServer()
        func configuration(_ options: String) -> Configuration {
            Configuration(
                socket: #"mode: "0666""#,
                backends: """
                    main: {plugin: postgresql, isolation: \(isolation), options: {connection: "\(server.connection)"}}
                    """,
                collections: "c: {backend: main\(options)}",
                access: """

                    - {users: [\(geteuid())], allow: [admin, read, write]}
                    - {users: [65534], allow: [read]}
                    """)
        }
        let daemon = try Daemon(configuration(""))
        let connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        #expect(try server.query(Self.refusal) != nil)
        try daemon.installation.configure(configuration(", indexes: [n], changes: true"))
        _ = try connection.reload()
        func indexing(_ connection: Connection) throws -> JSON? {
            let reply = try connection.call("collection.describe", #"{"collection":"c"}"#)
            guard let result = reply.result else { throw Failure("\(reply)") }
            return result["indexing"]?.elements?.first
        }
        let reason = try wait("a reason") {
            try indexing(connection)?["reason"]?.string.flatMap { $0.contains("42501") ? $0 : nil }
        }
        #expect(reason.contains("no index here"))
        #expect(try indexing(connection)?["property"]?.string == "n")
        if Peer.canImpersonate {
            let reader = try daemon.connect(as: Peer(user: 65534, group: 65534))
            #expect(try indexing(reader)?["property"]?.string == "n")
            #expect(try indexing(reader)?["reason"] == nil, "the words of a plugin are not for everybody")
        }
        #expect(try connection.upsert("c", "1", #"{"n":1,"m":1}"#).result != nil)
        #expect(try Self.find(connection) == (1, nil))
        #expect(daemon.log.matches(of: /<4>.*the table c cannot be changed yet/).count == 1, "\(daemon.log)")
        #expect(!daemon.log.contains("<3>"), "\(daemon.log)")
        #expect(try server.query("DROP EVENT TRIGGER refuse") != nil)
        _ = try wait("an index") { try indexing(connection) == nil ? true : nil }
        #expect(try Self.find(connection) == (1, "n"))
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
