import CRUDTestSupport
import Glibc
import Testing

/// A cluster that Patroni keeps, and what happens to the machines of such a one, while clients of a daemon check what
/// they are told.
@Suite struct PatroniTests {
    /// What happens to a cluster, from a healthy one to a healthy one.
    private struct Fault {
        let name: String
        let happen: (PatroniCluster) throws -> Void
        /// How it is repaired once crudd serves again.
        var repair: (PatroniCluster) throws -> Void = { _ in }
    }

    /// Longer than a leader remains one.
    private static func wait() { poll(nil, 0, Int32(PatroniCluster.timeToLive + 4) * 1000) }

    /// How much longer than the cluster's own outage crudd's may be; what it is in fact is printed.
    private static let allowance = Duration.seconds(10)

    @Test(.enabled(if: geteuid() == 0, "needs root for process namespaces"), arguments: [false, true])
    func nothingIsLostOrStale(isStrict: Bool) throws {
        let cluster = try PatroniCluster(isStrict: isStrict)
        let daemon = try Daemon(
            Configuration(
                backends: #"main: {plugin: postgresql, options: {connection: "\#(cluster.connection())"}}"#))
        let clients = try RecordClients(of: daemon)
        try clients.recover(after: "the start")
        let probe = try OutageProbe(cluster)
        for fault in try faults(of: cluster) {
            _ = try clients.recover(after: "nothing")
            _ = probe.takeOutage()
            try fault.happen(cluster)
            _ = try cluster.leader
            let outage = try clients.recover(after: fault.name, within: .seconds(90))
            try fault.repair(cluster)
            try cluster.awaitStandbys()
            let own = probe.takeOutage()
            print("cluster, strict \(isStrict), \(fault.name): crudd \(outage), the cluster \(own)")
            #expect(outage <= own + Self.allowance, "\(fault.name)")
        }
        #expect(clients.violations() == [])
        #expect(!daemon.log.contains("internal_error"))
    }

    private func faults(of cluster: PatroniCluster) throws -> [Fault] {
        var lost = 0
        var thaw: (@Sendable () -> Void)?
        return [
            Fault(name: "a planned switch-over") { try $0.switchOver() },
            Fault(
                name: "a killed leader",
                happen: {
                    lost = try $0.leader
                    try $0.kill(lost)
                }, repair: { try $0.start(lost) }),
            Fault(
                name: "a leader whose Patroni hangs",
                happen: {
                    thaw = try $0.freeze($0.leader, isWhole: false)
                    Self.wait()
                }, repair: { _ in thaw?() }),
            Fault(
                name: "a frozen leader",
                happen: {
                    thaw = try $0.freeze($0.leader, isWhole: true)
                    Self.wait()
                }, repair: { _ in thaw?() }),
            Fault(name: "a frozen etcd") {
                let thaw = try $0.freezeStore()
                Self.wait()
                thaw()
            },
        ]
    }
}
