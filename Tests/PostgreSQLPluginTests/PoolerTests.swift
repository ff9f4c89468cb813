import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import Testing

/// A real PgBouncer in front of a real server.
@Suite struct PoolerTests {
    private let server: PostgreSQLServer

    init() throws {
        server = try PostgreSQLServer.shared()
    }

    private struct Pooler {
        let directory: TemporaryDirectory
        let process: ChildProcess

        var connection: String { "host=\(directory.path) port=6432 dbname=postgres user=crudd" }

        func stop() throws {
            process.signal(SIGTERM)
            try process.waitForExit()
        }
    }

    /// Starts a pooler that reaches the server.
    private func start(_ mode: String) throws -> Pooler {
        let directory = try TemporaryDirectory()
        let users = "\(directory.path)/users"
        try Files.write(#""crudd" """#, to: users)
        let file = "\(directory.path)/pgbouncer.ini"
        try Files.write(
            """
            [databases]
            postgres = host=\(server.directory.path) port=\(server.port)
            [pgbouncer]
            listen_addr =
            unix_socket_dir = \(directory.path)
            unix_socket_mode = 0777
            listen_port = 6432
            auth_type = trust
            auth_file = \(users)
            pool_mode = \(mode)
            """, to: file)
        for path in [directory.path, users, file] { chmod(path, 0o777) }
        // It refuses to run as root.
        let command = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--", "pgbouncer", "-q", file]
        let isRoot = geteuid() == 0
        let process = try ChildProcess(
            isRoot ? "setpriv" : "pgbouncer", isRoot ? command : ["-q", file], descriptors: [])
        let pooler = Pooler(directory: directory, process: process)
        let deadline = Deadline()
        while try Command.run("psql", ["-X", "-d", pooler.connection, "-c", "SELECT 1"]).status != .exited(0) {
            guard !deadline.hasPassed, try process.isRunning else { throw Failure("PgBouncer does not start") }
            poll(nil, 0, 20)
        }
        return pooler
    }

    /// A session that is handed to another client has the other one's statements.
    @Test func sessionsHaveToBeKept() throws {
        let pooler = try start("transaction")
        let error = #expect(throws: CallError.self) {
            try PluginBackend.open(pooler.connection, schema: "transactions")
        }
        #expect(error?.status == CRUDD_UNSUPPORTED, "\(error.map { "\($0)" } ?? "")")
        #expect(error?.message.contains("pool_mode = session") == true)
        try pooler.stop()
    }

    /// Two backends of one database have their records each in its own tables.
    @Test func backendsShareAPooler() throws {
        let pooler = try start("session")
        let backends = try ["first", "second"].map {
            try PluginBackend.open(pooler.connection, schema: "pooled \($0)")
        }
        let collections = try backends.map { try $0.open("c", indexes: ["n"], hasSequences: true) }
        for (index, backend) in backends.enumerated() {
            for id in 0..<50 {
                let record = PluginRecord("\(id)", "\(index)")
                #expect(try backend.write([.put(record, keys: [[1]], in: collections[index])]) == [.created])
            }
            #expect(try backend.reader().read("0", in: collections[index])?.item == "\(index)")
        }
        for (index, name) in ["first", "second"].enumerated() {
            let count = "SELECT count(*) FROM \"pooled \(name)\".c WHERE item::text = '\(index)'"
            #expect(try server.query(count) == "50")
        }
        try pooler.stop()
    }
}
