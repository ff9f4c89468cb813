import CRUDTestSupport
import Glibc

/// What happens to a cluster, from a healthy one to a healthy one.
struct ClusterFault {
    let name: String
    let happen: (PatroniCluster) throws -> Void
    /// How it is repaired once crudd serves again.
    var repair: (PatroniCluster) throws -> Void = { _ in }

    static func switchOver() -> ClusterFault {
        ClusterFault(name: "a planned switch-over") { try $0.switchOver() }
    }

    static func killedLeader() -> ClusterFault {
        var lost = 0
        return ClusterFault(
            name: "a killed leader",
            happen: {
                lost = try $0.leader
                try $0.kill(lost)
            }, repair: { try $0.start(lost) })
    }

    /// - Parameter isWhole: whether its PostgreSQL is frozen too.
    static func frozenLeader(isWhole: Bool) -> ClusterFault {
        var thaw: (@Sendable () -> Void)?
        return ClusterFault(
            name: isWhole ? "a frozen leader" : "a leader whose Patroni hangs",
            happen: {
                thaw = try $0.freeze($0.leader, isWhole: isWhole)
                outliveLeader()
            }, repair: { _ in thaw?() })
    }

    static func frozenStore() -> ClusterFault {
        ClusterFault(name: "a frozen etcd") {
            let thaw = try $0.freezeStore()
            outliveLeader()
            thaw()
        }
    }

    /// The leader is cut off for longer than it remains one.
    static func cutLeader(from links: [MachineNetwork.Link]) -> ClusterFault {
        var lost = 0
        return ClusterFault(
            name: "a leader without its links to \(links.map { "\($0)" }.joined(separator: " and "))",
            happen: {
                lost = try $0.leader
                try $0.cut(lost, from: links)
                outliveLeader()
                if links == [.clients] { try $0.heal(lost) }
            }, repair: { try $0.heal(lost) })
    }

    /// Waits longer than a leader remains one.
    private static func outliveLeader() { poll(nil, 0, Int32(PatroniCluster.timeToLive + 4) * 1000) }
}
