import CRUDTestSupport
import Glibc

/// What happens to a primary, its two standbys, the network before them and a daemon, in an order that a seed decides.
/// After each fault the cluster is whole again.
final class PostgreSQLStorm {
    enum Fault: CaseIterable {
        case terminatedSessions, cancelledSessions, readOnlyPrimary, frozenDaemon, frozenPrimary, killedPrimary
        case killedStandby, promotion, promotionBesideFrozenPrimary, promotionWithoutLatest
        case cutConnections, slowNetwork, lostNetwork
    }

    let cluster: PostgreSQLCluster
    /// What the daemon reaches each server by.
    private let relays: [Relay]
    private var generator: SeededGenerator
    private var primary = 0

    init(seed: UInt64) throws {
        cluster = try PostgreSQLCluster()
        relays = try (0..<3).map { [cluster] in try Relay(to: cluster[$0]) }
        generator = SeededGenerator(seed: seed)
    }

    deinit { for relay in relays { relay.end() } }

    /// What a backend connects with.
    var connection: String {
        let hosts = relays.map(\.directory.path).joined(separator: ",")
        return "host=\(hosts) dbname=postgres user=crudd"
    }

    /// Makes a fault happen, and waits until the clients' writes are acknowledged again.
    ///
    /// - Returns: how long they were not.
    func happen(_ fault: Fault, _ daemon: Daemon, _ clients: RecordClients) throws -> Duration {
        let what = "\(fault), server \(primary)"
        switch fault {
        case .terminatedSessions: try signalSessions("pg_terminate_backend")
        case .cancelledSessions: try signalSessions("pg_cancel_backend")
        case .readOnlyPrimary:
            _ = try cluster[primary].query("ALTER SYSTEM SET default_transaction_read_only = on")
            _ = try cluster[primary].query("SELECT pg_reload_conf()")
            pause(200...1500)
            _ = try cluster[primary].query("ALTER SYSTEM RESET default_transaction_read_only")
            _ = try cluster[primary].query("SELECT pg_reload_conf()")
        case .frozenDaemon:
            daemon.process.signal(SIGSTOP)
            pause(100...5000)
            daemon.process.signal(SIGCONT)
        case .frozenPrimary:
            let thaw = try cluster[primary].freeze()
            pause(100...5000)
            thaw()
        case .killedPrimary:
            try cluster[primary].kill()
            pause(0...500)
            try cluster.startPrimary(primary)
        case .killedStandby:
            let standby = standbys.randomElement(using: &generator) ?? 1
            try cluster[standby].kill()
            try clients.recover(after: what)
            try cluster.start(standby, following: primary)
        case .promotion: try promote(clients)
        case .promotionBesideFrozenPrimary: try promote(clients, staysFrozen: true)
        case .promotionWithoutLatest: try promote(clients, withoutLatest: true)
        case .cutConnections:
            for _ in 0..<10 {
                relays[primary].cut()
                pause(0...100)
            }
        case .slowNetwork:
            for _ in 0..<5 {
                relays[primary].hold()
                pause(1...800)
                relays[primary].deliver()
                pause(1...100)
            }
        case .lostNetwork:
            relays[primary].hold()
            pause(3000...8000)
            relays[primary].letPass()
            try clients.recover(after: what)
            // What was sent then arrives after all.
            try relays[primary].release()
        }
        let outage = try clients.recover(after: what)
        try cluster.awaitStandbys(of: primary)
        return outage
    }

    private var standbys: [Int] { (0..<3).filter { $0 != primary } }

    private func pause(_ milliseconds: ClosedRange<Int32>) {
        _ = poll(nil, 0, Int32.random(in: milliseconds, using: &generator))
    }

    private func signalSessions(_ function: String) throws {
        let sessions = "FROM pg_stat_activity WHERE application_name = 'crudd'"
        for _ in 0..<10 {
            _ = try cluster[primary].query("SELECT \(function)(pid) \(sessions) ORDER BY random() LIMIT 2")
            pause(0...50)
        }
    }

    /// Ends what waits for a standby, as it comes: it is committed and visible, and no standby has it.
    private func endWaits() throws {
        let function = Bool.random(using: &generator) ? "pg_terminate_backend" : "pg_cancel_backend"
        for _ in 0..<20 {
            _ = try cluster[primary].query(
                "SELECT \(function)(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            pause(10...150)
        }
    }

    /// Another server becomes the primary; the old one does not know, and is a standby in the end.
    ///
    /// - Parameters:
    ///   - staysFrozen: whether the old one thaws only when clients write to the new one.
    ///   - withoutLatest: whether the old one has committed without its standbys before.
    private func promote(
        _ clients: RecordClients, staysFrozen: Bool = false, withoutLatest: Bool = false
    ) throws {
        let former = primary
        let others = standbys
        if withoutLatest {
            for standby in others { try cluster[standby].kill() }
            try endWaits()
        }
        // No standby receives more while it is decided which one has received most.
        let thaw = try cluster[former].freeze()
        defer { thaw() }
        if withoutLatest {
            for standby in others {
                try cluster.start(standby, following: former)
                // It has replayed all that it has received.
                let receivers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walreceiver'"
                try cluster.waitFor(standby, receivers, is: "1")
            }
        }
        primary = try cluster.promote(insteadOf: former)
        if staysFrozen { try clients.recover(after: "a promotion of \(primary) instead of \(former)") }
        thaw()
        try clients.recover(after: "the old primary is back")
        try cluster.replace(former, following: primary)
    }
}
