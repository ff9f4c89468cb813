import CRUDTestSupport
import Testing

/// A server that asks for a password, which the daemon's environment leads to.
@Suite struct PasswordTests {
    @Test(arguments: ["inline", "process"], ["CREDENTIALS_DIRECTORY", "PGPASSFILE"])
    func aPasswordIsFoundThroughTheEnvironment(isolation: String, variable: String) throws {
        let server = try PostgreSQLServer()
        try #require(try server.query("ALTER ROLE crudd PASSWORD 'tulip'") != nil)
        try Files.write("local all all scram-sha-256\n", to: "\(server.data)/pg_hba.conf")
        try #require(try server.query("SELECT pg_reload_conf()") != nil)
        let deadline = Deadline()
        while try server.query("SELECT 1") != nil {
            try #require(!deadline.hasPassed, "the server asks for no password")
        }
        let installation = try Installation(
            Configuration(
                backends: """
                    main: {plugin: postgresql, isolation: \(isolation), options: {connection: "\(server.connection)"}}
                    """))
        try Files.write("tulip\n", to: "\(installation.path)/postgresql.password", mode: 0o600)
        try Files.write("*:*:*:*:tulip\n", to: "\(installation.path)/passfile", mode: 0o600)
        let places = ["CREDENTIALS_DIRECTORY": installation.path, "PGPASSFILE": "\(installation.path)/passfile"]
        let daemon = try Daemon(on: installation, environment: places.filter { $0.key == variable })
        let reply = try daemon.connect().create("c", "a", "1")
        #expect(reply.result != nil, "\(reply) \(daemon.log)")
        #expect(try daemon.stop() == .exited(0))
    }
}
