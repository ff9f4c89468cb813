import CRUDTestSupport
import Glibc
import Testing

/// Servers, sessions and the daemon that are stopped in any order while clients check what they are told.
@Suite struct PostgreSQLStormTests {
    /// For how long faults happen in a random order; ten minutes, say, by the environment, and the seed as well.
    private static let duration = number("CRUDD_STORM_SECONDS") ?? 20
    private static let seed = number("CRUDD_STORM_SEED") ?? 1

    private static func number(_ variable: String) -> UInt64? {
        getenv(variable).flatMap { UInt64(String(cString: $0)) }
    }

    @Test func nothingIsLostOrStaleInAnyOrder() throws {
        let storm = try PostgreSQLStorm(seed: Self.seed)
        let daemon = try Daemon(
            Configuration(
                backends: #"main: {plugin: postgresql, options: {connection: "\#(storm.connection)"}}"#,
                collections: "c: {backend: main, changes: true}"))
        let clients = try RecordClients(of: daemon)
        try clients.recover(after: "the start")
        let follower = try ChangeFollower(of: RestartedDaemon(daemon))
        let deadline = Deadline(.seconds(Int64(Self.duration)))
        var generator = SeededGenerator(seed: Self.seed)
        var outages: [PostgreSQLStorm.Fault: Duration] = [:]
        // Each once, and then at random.
        var faults = PostgreSQLStorm.Fault.allCases.shuffled(using: &generator)
        while !deadline.hasPassed {
            let fault = faults.popLast() ?? PostgreSQLStorm.Fault.allCases.randomElement(using: &generator)!
            let outage = try storm.happen(fault, daemon, clients)
            outages[fault] = max(outages[fault] ?? .zero, outage)
            try #require(follower.failure == nil, "after \(fault)")
        }
        print("storm, seed \(Self.seed): \(outages)")
        #expect(clients.violations() == [])
        #expect(try follower.differences() == [])
        #expect(follower.beginnings == 0)
        #expect(!daemon.log.contains("internal_error"))
    }

    /// Three daemons write one schema, and are killed and frozen as well; at each of them a client follows, one changes
    /// two records together, and one those that are as it has read them. Left out is what only the server could
    /// exclude: that another daemon's commit, which an administrator has kept from waiting for the standbys, is seen
    /// and lost.
    @Test func nothingIsLostOrStaleAtSeveralDaemons() throws {
        let storm = try PostgreSQLStorm(seed: Self.seed)
        let configuration = Configuration(
            backends: #"main: {plugin: postgresql, options: {connection: "\#(storm.connection)", shared: true}}"#,
            collections: "c: {backend: main, changes: true}")
        let daemons = try (0..<3).map { _ in RestartedDaemon(try Daemon(configuration)) }
        let clients = try RecordClients(6, of: daemons)
        try clients.recover(after: "the start")
        let pairs = try PairClients(of: daemons)
        let batches = try BatchClients(of: daemons)
        let followers = try daemons.map { try ChangeFollower(of: $0) }
        let deadline = Deadline(.seconds(Int64(Self.duration)))
        var generator = SeededGenerator(seed: Self.seed)
        let all = PostgreSQLStorm.Fault.allCases.filter { $0 != .promotionWithoutLatest }
        var faults = all.shuffled(using: &generator)
        while !deadline.hasPassed {
            let fault = faults.popLast() ?? all.randomElement(using: &generator)!
            let daemon = daemons[Int.random(in: 0..<3, using: &generator)]
            _ = try storm.happen(fault, daemon.current, clients)
            if Int.random(in: 0..<3, using: &generator) == 0 {
                try daemon.restart()
                try clients.recover(after: "a killed daemon")
            }
            try #require(followers.compactMap(\.failure) == [], "after \(fault)")
        }
        #expect(clients.violations() == [])
        #expect(pairs.violations() == [])
        #expect(try batches.violations() == [])
        for follower in followers { #expect(try follower.differences() == []) }
        for daemon in daemons { #expect(!daemon.current.log.contains("internal_error")) }
    }

    @Test(arguments: ["", "cache: false, "])
    func nothingIsLostOrStale(option: String) throws {
        let cluster = try PostgreSQLCluster()
        let daemon = try Daemon(
            Configuration(
                backends: #"main: {plugin: postgresql, \#(option)options: {connection: "\#(cluster.connection)"}}"#))
        let clients = try RecordClients(of: daemon)
        try clients.recover(after: "the start")
        try disturb(cluster, 0, clients, daemon)
        // The primary is frozen while its successor is chosen, and thaws behind its back.
        let thaw = try cluster[0].freeze()
        defer { thaw() }
        let winner = try cluster.promote()
        try clients.recover(after: "a promotion")
        thaw()
        try clients.recover(after: "the old primary is back")
        try disturb(cluster, winner, clients, daemon)
        try cluster[winner].kill()
        try cluster.startPrimary(winner)
        try clients.recover(after: "a restart")
        #expect(clients.violations() == [])
        #expect(!daemon.log.contains("internal_error"))
    }

    /// What happens to sessions, to the daemon and to the servers' willingness, without another primary.
    private func disturb(
        _ cluster: PostgreSQLCluster, _ primary: Int, _ clients: RecordClients, _ daemon: Daemon
    ) throws {
        let sessions = "FROM pg_stat_activity WHERE application_name = 'crudd'"
        for function in ["pg_terminate_backend", "pg_cancel_backend"] {
            for _ in 0..<10 {
                _ = try cluster[primary].query("SELECT \(function)(pid) \(sessions) ORDER BY random() LIMIT 2")
                poll(nil, 0, 20)
            }
            try clients.recover(after: function)
        }
        _ = try cluster[primary].query("ALTER SYSTEM SET default_transaction_read_only = on")
        _ = try cluster[primary].query("SELECT pg_reload_conf()")
        poll(nil, 0, 500)
        _ = try cluster[primary].query("ALTER SYSTEM RESET default_transaction_read_only")
        _ = try cluster[primary].query("SELECT pg_reload_conf()")
        try clients.recover(after: "a demotion")
        daemon.process.signal(SIGSTOP)
        poll(nil, 0, 300)
        daemon.process.signal(SIGCONT)
        try clients.recover(after: "a frozen daemon")
    }
}
