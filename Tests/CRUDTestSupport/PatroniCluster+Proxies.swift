// What applications often connect to such a cluster through.
extension PatroniCluster {
    /// Starts HAProxy, which leads to the member whose Patroni says that it is the leader.
    ///
    /// - Returns: the proxy, and what a backend connects with.
    package func startHAProxy() throws -> (processes: [ContainedProcess], connection: String) {
        let members = (0..<Self.size).map { "    server \(name($0)) \(address($0)):5432 check port 8008" }
        let file = "\(directory.path)/haproxy.cfg"
        try Files.write(
            """
            defaults
                mode tcp
                timeout connect 2s
                timeout client 1h
                timeout server 1h
            listen leader
                bind \(address(Self.size)):5432
                option httpchk OPTIONS /primary
                http-check expect status 200
                default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
            \(members.joined(separator: "\n"))

            """, to: file)
        let proxy = try ContainedProcess(
            "haproxy", ["-db", "-f", file], user: Self.user, log: "\(directory.path)/haproxy.log")
        return ([proxy], connection(to: [Self.size]))
    }

    /// Starts a PgBouncer in session mode before each member.
    ///
    /// - Returns: the poolers, and what a backend connects with.
    package func startPgBouncers() throws -> (processes: [ContainedProcess], connection: String) {
        let users = "\(directory.path)/users"
        try Files.write(#""crudd" """#, to: users)
        let poolers = try (0..<Self.size).map { index in
            let file = "\(directory.path)/pgbouncer\(index).ini"
            try Files.write(
                """
                [databases]
                postgres = host=\(address(index)) port=5432
                [pgbouncer]
                listen_addr = \(address(index))
                listen_port = 6432
                unix_socket_dir =
                auth_type = trust
                auth_file = \(users)
                pool_mode = session
                """, to: file)
            return try ContainedProcess(
                "pgbouncer", ["-q", file], user: Self.user, log: "\(directory.path)/pgbouncer\(index).log")
        }
        return (poolers, connection(port: 6432))
    }
}
