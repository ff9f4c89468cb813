import CRUDTestSupport
import Glibc
import Testing

/// A cluster that Patroni keeps, and what happens to the machines of such a one, while clients of a daemon check what
/// they are told.
@Suite struct PatroniTests {
    /// How much longer than the cluster's own outage crudd's may be; what it is in fact is printed.
    private static let allowance = Duration.seconds(10)

    @Test(.enabled(if: geteuid() == 0, "needs root for process namespaces"), arguments: [false, true])
    func nothingIsLostOrStale(isStrict: Bool) throws {
        try check(
            PatroniCluster(isStrict: isStrict),
            [
                .switchOver(), .killedLeader(), .frozenLeader(isWhole: false), .frozenLeader(isWhole: true),
                .frozenStore(),
            ], "strict \(isStrict)")
    }

    /// The leader is cut off from etcd and the other members, from its clients, or from both, and joined again.
    @Test(.enabled(if: geteuid() == 0, "needs root for network namespaces"), arguments: [false, true])
    func nothingIsLostOrStaleWhereNetworksAreCut(isStrict: Bool) throws {
        try check(
            PatroniCluster(isStrict: isStrict, hasLinks: true),
            [.cutLeader(from: [.peers]), .cutLeader(from: [.peers, .clients]), .cutLeader(from: [.clients])],
            "strict \(isStrict)")
    }

    /// Where the leader reaches the other members it stays the leader without etcd.
    @Test(.enabled(if: geteuid() == 0, "needs root for process namespaces"))
    func lossOfEtcdInterruptsNothingInFailsafeMode() throws {
        let cluster = try PatroniCluster(isStrict: true, isFailsafe: true)
        let leader = try cluster.leader
        try check(cluster, [.frozenStore()], "failsafe")
        #expect(try cluster.leader == leader)
    }

    private func check(_ cluster: PatroniCluster, _ faults: [ClusterFault], _ what: String) throws {
        let daemon = try Daemon(on: cluster.connection())
        let clients = try RecordClients(of: daemon)
        try clients.recover(after: "the start")
        let probe = try OutageProbe(cluster)
        for fault in faults {
            _ = try clients.recover(after: "nothing")
            _ = probe.takeOutage()
            try fault.happen(cluster)
            _ = try cluster.leader
            let outage = try clients.recover(after: fault.name, within: .seconds(90))
            try fault.repair(cluster)
            try cluster.awaitStandbys()
            let own = probe.takeOutage()
            print("cluster, \(what), \(fault.name): crudd \(outage), the cluster \(own)")
            #expect(outage <= own + Self.allowance, "\(fault.name)")
        }
        #expect(clients.violations() == [])
        #expect(!daemon.log.contains("internal_error"))
    }
}
