import Glibc

/// A primary and standbys of it, which may be promoted. Server 0 is the first primary.
package final class PostgreSQLCluster: Sendable {
    private let directory: TemporaryDirectory
    private let servers: [PostgreSQLServer]
    /// Whether one of the standbys must have a commit before it is acknowledged.
    private let isSynchronous: Bool

    /// - Parameter isSynchronous: whether one of the standbys must have a commit before it is acknowledged; on a
    ///   promoted server, too.
    package init(standbys: Int = 2, isSynchronous: Bool = true) throws {
        self.isSynchronous = isSynchronous
        let first = try PostgreSQLServer(settings: ["wal_level": "replica"])
        directory = first.directory
        servers = try [first] + (1..<(standbys + 1)).map { try PostgreSQLServer(in: first.directory, port: 5432 + $0) }
        for index in 1...standbys {
            try copy(0, to: index)
            try start(index, following: 0)
        }
        guard isSynchronous else { return }
        try first.stop()
        try first.start(settings: settings(0, following: nil))
        try waitFor(0, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'", is: "\(standbys)")
    }

    package subscript(index: Int) -> PostgreSQLServer { servers[index] }

    private func name(_ index: Int) -> String { "s\(index)" }

    private func settings(_ index: Int, following primary: Int?) -> [String: String] {
        // A standby that is away for a while finds the log.
        var settings = ["wal_level": "replica", "wal_keep_size": "256MB"]
        if isSynchronous {
            settings["synchronous_standby_names"] = "ANY 1 (\(servers.indices.map(name).joined(separator: ", ")))"
        }
        if let primary {
            settings["primary_conninfo"] = "\(servers[primary].connection) application_name=\(name(index))"
        }
        return settings
    }

    /// What a backend connects with.
    package var connection: String {
        let hosts = servers.map { _ in directory.path }.joined(separator: ",")
        let ports = servers.map { "\($0.port)" }.joined(separator: ",")
        return "host=\(hosts) port=\(ports) dbname=postgres user=crudd"
    }

    /// Starts a server that does not run as a standby.
    package func start(_ index: Int, following primary: Int) throws {
        try Files.write("", to: "\(servers[index].data)/standby.signal")
        try servers[index].start(settings: settings(index, following: primary))
    }

    /// Starts a server that does not run as a primary.
    package func startPrimary(_ index: Int) throws {
        try servers[index].start(settings: settings(index, following: nil))
    }

    /// Promotes a standby.
    package func promote(_ index: Int) throws {
        try servers[index].runTool("pg_ctl", ["promote", "-D", servers[index].data])
    }

    /// Promotes the standby of two that has received most; the other one follows it.
    ///
    /// - Parameter former: the primary, which is left as it is.
    /// - Returns: the new primary.
    @discardableResult
    package func promote(insteadOf former: Int = 0) throws -> Int {
        let standbys = servers.indices.filter { $0 != former }
        let positions = try standbys.map { index in
            // One that has been restarted since has received nothing, but replayed what it had.
            let position = "greatest(coalesce(pg_last_wal_receive_lsn(), '0/0'), pg_last_wal_replay_lsn())"
            return try servers[index].query("SELECT pg_wal_lsn_diff(\(position), '0/0')").flatMap { Double($0) } ?? 0
        }
        let isFirst = positions[0] >= positions[1]
        let (winner, other) = isFirst ? (standbys[0], standbys[1]) : (standbys[1], standbys[0])
        try servers[other].stop()
        try promote(winner)
        try start(other, following: winner)
        return winner
    }

    /// Ends a server, and makes it a new standby.
    package func replace(_ index: Int, following primary: Int) throws {
        try servers[index].stop()
        Files.remove(servers[index].data)
        try copy(primary, to: index)
        try start(index, following: primary)
    }

    private func copy(_ primary: Int, to index: Int) throws {
        try servers[index].runTool(
            "pg_basebackup",
            [
                "-d", servers[primary].connection, "-D", servers[index].data, "-X", "stream", "-c", "fast", "--no-sync",
            ])
    }

    /// Waits until both standbys follow a primary.
    package func awaitStandbys(of primary: Int) throws {
        try waitFor(
            primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", is: "\(servers.count - 1)")
    }

    /// Waits until a query has a result.
    package func waitFor(_ index: Int, _ query: String, is value: String) throws {
        let deadline = Deadline()
        while try servers[index].query(query) != value {
            guard !deadline.hasPassed else { throw Failure("\(query) does not become \(value)") }
            poll(nil, 0, 50)
        }
    }
}
