import CRUDTestSupport
import Testing

/// The plugin conforms to the plugin contract, in every format, within the daemon and in a child.
@Suite(.serialized) struct ConformanceTests {
    @Test(arguments: ["schema: inline", "schema: child", "{schema: shared, shared: true}"])
    func conforms(options: String) throws {
        // Transactions of others would hold up what daemons that share a schema have changed.
        let isShared = options.contains("shared: true")
        let server = try isShared ? PostgreSQLServer() : .shared()
        let relay = try Relay(to: server)
        defer { withExtendedLifetime(server) { relay.end() } }
        let directory = try TemporaryDirectory()
        let plugin = "\(directory.path)/postgresql.so"
        try Files.copy(BuildProducts.path(of: "libpostgresql.so"), to: plugin, mode: 0o755)
        let members = options.drop { $0 == "{" }.prefix { $0 != "}" }
        let outcome = try Command.run(
            BuildProducts.path(of: "crudd-plugin-check"),
            [plugin, "--options", "{connection: '\(relay.connection)', \(members)}"]
                + (options.contains("child") ? ["--in-child"] : []),
            until: Deadline(.seconds(600)))
        let failures = outcome.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") && !$0.hasPrefix("- ") }
        #expect(outcome.status == .exited(0), "\(failures.joined(separator: "\n"))\n\(outcome.errors)")
        for format in ["json", "xml", "plist"] {
            for check in ["preconditions", "odd ids", "large items", "reopening after kill -9"] {
                #expect(outcome.output.contains("ok      \(format): \(check)\n"), "\(check)")
            }
        }
        // Where daemons share a schema on servers that have shards there are no feeds.
        ShardedSQL.check(relay.statements.filter { !$0.hasPrefix("LISTEN") })
    }
}
