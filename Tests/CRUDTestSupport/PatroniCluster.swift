import Glibc
import Synchronization

/// Three servers of PostgreSQL that Patroni makes a cluster of, and the etcd by which it agrees on a leader. Each is a
/// machine of its own as far as that can be: a process namespace, and an address of the loopback network or links of
/// its own, which can be cut.
package final class PatroniCluster: Sendable {
    package static let size = 3
    /// How long a leader stays one after it was heard of last, in seconds.
    package static let timeToLive = 12
    static let user = "postgres"

    let directory: TemporaryDirectory
    private let members: Mutex<[ContainedProcess?]>
    private let etcd: ContainedProcess
    /// Such as `127.64.7`, which no other cluster has.
    private let network: String
    /// The links of the machines, etcd's the last; nil: they have none.
    private let links: MachineNetwork?
    private static let count = Atomic(0)

    /// - Parameters:
    ///   - isStrict: `synchronous_mode_strict`: no commit without a standby.
    ///   - isFailsafe: `failsafe_mode`: a leader stays one without etcd while it reaches all others.
    ///   - hasLinks: whether the machines have links that can be cut.
    package init(isStrict: Bool, isFailsafe: Bool = false, hasLinks: Bool = false) throws {
        try Self.checkPrograms()
        let number = Self.count.add(1, ordering: .relaxed).newValue
        network = "127.\(64 + number % 128).\(1 + getpid() % 254)"
        let links = hasLinks ? try MachineNetwork(machines: Self.size + 1) : nil
        self.links = links
        directory = try TemporaryDirectory(in: PostgreSQLServer.parent)
        try Self.give(directory.path)
        let address = "http://\(links?.address(Self.size, .peers) ?? "\(network).9")"
        etcd = try ContainedProcess(
            "etcd",
            [
                "--enable-v2=true", "--data-dir", "\(directory.path)/etcd",
                "--listen-client-urls", "\(address):2379", "--advertise-client-urls", "\(address):2379",
                "--listen-peer-urls", "\(address):2380", "--initial-advertise-peer-urls", "\(address):2380",
                "--initial-cluster", "default=\(address):2380",
            ], user: Self.user, network: links?.namespace(Self.size), log: "\(directory.path)/etcd.log")
        members = Mutex([ContainedProcess?](repeating: nil, count: Self.size))
        for index in 0..<Self.size {
            try Files.makeDirectory("\(directory.path)/run\(index)")
            try Self.give("\(directory.path)/run\(index)")
            try Files.write(try settings(index, isStrict: isStrict, isFailsafe: isFailsafe), to: file(index))
            try start(index)
        }
        try awaitStandbys()
        // The table is for what other clients of the cluster see of it.
        let deadline = Deadline()
        while try query("CREATE ROLE crudd SUPERUSER LOGIN; CREATE TABLE probe (n integer)", within: .seconds(30))
            == nil
        {
            guard !deadline.hasPassed else { throw Failure("no statement is executed\n\(log)") }
        }
    }

    /// Without one of them the cluster would not start, and say so after minutes.
    private static func checkPrograms() throws {
        let programs = ["etcd", "haproxy", "patroni", "patronictl", "pgbouncer", "pkill", "psql", "setpriv", "unshare"]
        var missing = try programs.filter { try Command.run("sh", ["-c", "command -v \($0)"]).status != .exited(0) }
        if try Command.run("/usr/bin/python3", ["-c", "import etcd"]).status != .exited(0) {
            missing.append("python3-etcd")
        }
        guard missing.isEmpty else {
            throw Failure("not installed: \(missing.joined(separator: ", ")); `make deps-test` installs them")
        }
    }

    deinit {
        // Before the directory is removed that they write to.
        for index in 0..<Self.size { try? kill(index) }
        try? etcd.kill()
    }

    // MARK: Who is there

    /// Where clients reach it.
    package func address(_ index: Int) -> String { links?.address(index) ?? "\(network).\(index + 1)" }

    /// Where the others reach it.
    private func peerAddress(_ index: Int) -> String { links?.address(index, .peers) ?? address(index) }

    func name(_ index: Int) -> String { "m\(index)" }

    private func file(_ index: Int) -> String { "\(directory.path)/\(name(index)).yml" }

    /// What a backend connects with: every member, or what stands before it, in that order.
    package func connection(port: Int = 5432, to addresses: [Int] = [0, 1, 2]) -> String {
        "host=\(addresses.map(address).joined(separator: ",")) port=\(port) dbname=postgres user=crudd"
    }

    package var leader: Int {
        get throws {
            let deadline = Deadline()
            while !deadline.hasPassed {
                for index in 0..<Self.size where try query("SELECT pg_is_in_recovery()", on: index) == "f" {
                    return index
                }
                poll(nil, 0, 50)
            }
            throw Failure("there is no leader\n\(log)")
        }
    }

    /// Runs SQL on a member, or on whichever one accepts writes.
    ///
    /// - Returns: the values of the rows; nil if it failed.
    package func query(_ sql: String, on index: Int? = nil, within timeout: Duration = .seconds(5)) throws -> String? {
        let host = index.map(address) ?? (0..<Self.size).map(address).joined(separator: ",")
        let connection =
            "host=\(host) dbname=postgres user=postgres connect_timeout=2 "
            + "target_session_attrs=\(index == nil ? "read-write" : "any")"
        guard
            let outcome = try? Command.run(
                "psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", connection, "-c", sql],
                until: Deadline(timeout))
        else { return nil }
        return outcome.status == .exited(0) ? String(outcome.output.dropLast()) : nil
    }

    /// Waits until both standbys follow the leader, commits wait for one of them, and etcd has noted which one: only
    /// that one may become the leader.
    package func awaitStandbys() throws {
        let deadline = Deadline()
        let count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        while try query(count) != "2" || !control(["list", "-f", "json"]).contains("Sync Standby") {
            guard !deadline.hasPassed else { throw Failure("the standbys do not follow\n\(log)") }
            poll(nil, 0, 200)
        }
    }

    /// What `patronictl` prints.
    private func control(_ arguments: [String]) throws -> String {
        let outcome = try Command.run("patronictl", ["-c", file(0)] + arguments)
        guard outcome.status == .exited(0) else { throw Failure("\(arguments): \(outcome.errors)\(outcome.output)") }
        return outcome.output
    }

    package var log: String {
        ["etcd.log", "0.log", "1.log", "2.log"].map { name in
            let bytes = (try? Files.read("\(directory.path)/\(name)")) ?? []
            return "\(name):\n\(String(decoding: bytes.suffix(3000), as: UTF8.self))"
        }.joined(separator: "\n")
    }

    // MARK: What happens to them

    package func start(_ index: Int) throws {
        // As after a boot: no process of it is left that could have that number.
        Files.remove("\(directory.path)/data\(index)/postmaster.pid")
        let member = try ContainedProcess(
            "patroni", [file(index)], user: Self.user, network: links?.namespace(index),
            log: "\(directory.path)/\(index).log")
        members.withLock { $0[index] = member }
    }

    /// Patroni and PostgreSQL end at once.
    package func kill(_ index: Int) throws {
        try members.withLock { $0[index].take() }?.kill()
    }

    /// Stops Patroni on a member, and PostgreSQL as well if `isWhole`.
    ///
    /// - Returns: what continues them.
    package func freeze(_ index: Int, isWhole: Bool) throws -> @Sendable () -> Void {
        guard let member = members.withLock({ $0[index] }) else { return {} }
        return try member.freeze { isWhole || $0 != "postgres" }
    }

    /// Cuts links of a member of a cluster that has them.
    ///
    /// - Parameter links: those to etcd and the other members, or to clients.
    package func cut(_ index: Int, from links: [MachineNetwork.Link]) throws {
        try self.links?.cut(index, from: links)
    }

    package func heal(_ index: Int) throws { try links?.heal(index) }

    package func freezeStore() throws -> @Sendable () -> Void { try etcd.freeze() }

    /// Makes another member the leader, as an administrator does.
    package func switchOver() throws {
        let former = try leader
        let deadline = Deadline()
        // Patroni refuses it for as long as it has not heard of a standby lately, as on a busy machine.
        while true {
            do {
                _ = try control(["switchover", "crudd", "--master", name(former), "--force"])
                return
            } catch {
                if try leader != former { return }
                if deadline.hasPassed { throw error }
                poll(nil, 0, 500)
            }
        }
    }

    // MARK: Settings

    private func settings(_ index: Int, isStrict: Bool, isFailsafe: Bool) throws -> String {
        try """
        scope: crudd
        name: \(name(index))
        restapi: {listen: "\(listening(index)):8008", connect_address: "\(peerAddress(index)):8008"}
        etcd: {host: "\(links?.address(Self.size, .peers) ?? "\(network).9"):2379"}
        bootstrap:
          dcs:
            ttl: \(Self.timeToLive)
            loop_wait: 2
            retry_timeout: 4
            synchronous_mode: true
            synchronous_mode_strict: \(isStrict)
            failsafe_mode: \(isFailsafe)
            postgresql: {use_pg_rewind: true, parameters: {wal_log_hints: "on"}}
          initdb: [{encoding: UTF8}, {locale: C}, no-sync]
        postgresql:
          listen: "\(listening(index)):5432"
          connect_address: "\(peerAddress(index)):5432"
          data_dir: \(directory.path)/data\(index)
          bin_dir: \(PostgreSQLServer.programs)
          pgpass: \(directory.path)/pgpass\(index)
          authentication:
            superuser: {username: postgres, password: secret}
            replication: {username: replicator, password: secret}
          parameters: {unix_socket_directories: \(directory.path)/run\(index)}
          pg_hba: [local all all trust, host all all all trust, host replication all all trust]

        """
    }

    private func listening(_ index: Int) -> String { links == nil ? address(index) : "0.0.0.0" }

    private static func give(_ path: String) throws {
        guard let entry = getpwnam(user), chown(path, entry.pointee.pw_uid, entry.pointee.pw_gid) == 0 else {
            throw Failure.system("chown")
        }
    }
}
