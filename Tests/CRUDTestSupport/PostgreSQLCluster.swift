import Glibc

/// Three servers: a primary, and two standbys of which one must have a commit before it is acknowledged.
package final class PostgreSQLCluster: Sendable {
    private let directory: TemporaryDirectory
    private let servers: [PostgreSQLServer]

    private static let settings = ["synchronous_standby_names": "ANY 1 (b, c)", "wal_level": "replica"]
    private static let names = ["a", "b", "c"]

    package init() throws {
        let first = try PostgreSQLServer(settings: Self.settings.merging(["synchronous_standby_names": ""]) { $1 })
        directory = first.directory
        servers = try [first] + [5433, 5434].map { try PostgreSQLServer(in: first.directory, port: $0) }
        for index in 1...2 {
            try servers[index].runTool(
                "pg_basebackup",
                ["-d", first.connection, "-D", servers[index].data, "-X", "stream", "-c", "fast", "--no-sync"])
            try Files.write("", to: "\(servers[index].data)/standby.signal")
            try servers[index].start(settings: settings(index, following: 0))
        }
        try first.stop()
        try first.start(settings: settings(0, following: nil))
        try waitUntil(first, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'", is: "2")
    }

    private func settings(_ index: Int, following primary: Int?) -> [String: String] {
        guard let primary else { return Self.settings }
        return Self.settings.merging([
            "primary_conninfo": "\(servers[primary].connection) application_name=\(Self.names[index])"
        ]) { $1 }
    }

    /// What a backend connects with.
    package var connection: String {
        let hosts = servers.map { _ in directory.path }.joined(separator: ",")
        let ports = servers.map { "\($0.port)" }.joined(separator: ",")
        return "host=\(hosts) port=\(ports) dbname=postgres user=crudd target_session_attrs=read-write"
    }

    package func killPrimary() throws { try servers[0].kill() }

    /// Promotes the standby that has received most; the other one follows it.
    package func promote() throws {
        let positions = try [1, 2].map { index in
            try servers[index].query("SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')").flatMap { Double($0) }
                ?? 0
        }
        let (winner, other) = positions[0] >= positions[1] ? (1, 2) : (2, 1)
        try servers[other].stop()
        try servers[winner].runTool("pg_ctl", ["promote", "-D", servers[winner].data])
        try servers[other].start(settings: settings(other, following: winner))
    }

    private func waitUntil(_ server: PostgreSQLServer, _ query: String, is value: String) throws {
        let deadline = Deadline()
        while try server.query(query) != value {
            guard !deadline.hasPassed else { throw Failure("\(query) does not become \(value)") }
            poll(nil, 0, 50)
        }
    }
}
