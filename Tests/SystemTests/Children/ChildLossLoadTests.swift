import CRUDTestSupport
import Glibc
import Testing

/// A child that is killed again and again, while its backend and others are at work.
@Suite struct ChildLossLoadTests {
    private static let killed = "sqlite"
    private static let others = ["inline", "other"]
    private static let rounds = 5
    /// Two CPUs that start a process, with other programs beside it, make a thread wait for many turns of the
    /// scheduler, a few milliseconds each, whatever the daemon does. A child takes longer to be available again.
    private static let noise = Duration.milliseconds(200)

    /// Phases with and without kills take turns, so that a machine that is busy with something else is so in both.
    @Test func isTheTroubleOfItsOwnBackendAlone() throws {
        let daemon = try ChildDaemon([Self.killed] + Self.others).daemon
        var load = try ChildLossLoad(on: daemon, killed: Self.killed, others: Self.others)
        // What is made on first use is not to be measured.
        _ = try load.run(for: .milliseconds(300), killing: false)
        var quiet: [String: [Duration]] = [:]
        var disturbed: [String: [Duration]] = [:]
        // By the round in which the machine was least busy with something else, of up to twenty.
        func isDisturbed(_ backend: String) -> Bool {
            guard let usual = quiet[backend]?.min(), let beside = disturbed[backend]?.min() else { return true }
            return beside > max(usual * 2, Self.noise)
        }
        func isSlow() -> Bool { load.recoveries.allSatisfy { $0 >= .seconds(1) } }
        var round = 0
        while round < Self.rounds || round < 20 && (isSlow() || Self.others.contains(where: isDisturbed)) {
            round += 1
            for (backend, p99) in try load.run(for: .seconds(1), killing: false) {
                quiet[backend, default: []].append(p99)
            }
            for (backend, p99) in try load.run(for: .seconds(1), killing: true) {
                disturbed[backend, default: []].append(p99)
            }
        }
        try load.drain()

        for backend in Self.others {
            let times = (quiet[backend] ?? [], disturbed[backend] ?? [])
            #expect(!isDisturbed(backend), "\(backend): p99 \(times.0) without kills, \(times.1) with them")
        }
        #expect(load.kills > 0)
        #expect(load.recoveries.count == load.kills)
        #expect(!isSlow(), "\(load.recoveries)")

        let fates = load.fates
        #expect(fates[.acknowledged, default: 0] > 0, "\(fates)")
        #expect(fates[.unavailable, default: 0] + fates[.unknown, default: 0] > 0, "\(fates)")
        #expect(fates[.inFlight] == nil, "\(fates)")
        try load.check(daemon.connect())
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
