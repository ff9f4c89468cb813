import CRUDTestSupport
import Glibc
import Testing

/// The two fail-overs that every cluster has, by each way in which a daemon may be connected to it.
@Suite struct FailOverTests {
    enum Way: CaseIterable {
        /// All members are hosts of the connection.
        case members
        case haProxy
        case pgBouncer
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for process namespaces"), arguments: Way.allCases)
    func nothingIsLostOrStale(by way: Way) throws {
        let cluster = try PatroniCluster(isStrict: true)
        let (proxies, connection): ([ContainedProcess], String) =
            switch way {
            case .members: ([], cluster.connection())
            case .haProxy: try cluster.startHAProxy()
            case .pgBouncer: try cluster.startPgBouncers()
            }
        let daemon = try Daemon(on: connection)
        let clients = try RecordClients(of: daemon)
        try clients.recover(after: "the start")
        for fault: ClusterFault in [.switchOver(), .killedLeader()] {
            try fault.happen(cluster)
            let outage = try clients.recover(after: fault.name, within: .seconds(90))
            try fault.repair(cluster)
            try cluster.awaitStandbys()
            print("cluster, by \(way), \(fault.name): crudd \(outage)")
        }
        for proxy in proxies { #expect(try proxy.isRunning) }
        #expect(clients.violations() == [])
        #expect(!daemon.log.contains("internal_error"))
    }
}

extension Daemon {
    convenience init(on connection: String) throws {
        try self.init(Configuration(backends: #"main: {plugin: postgresql, options: {connection: "\#(connection)"}}"#))
    }
}
