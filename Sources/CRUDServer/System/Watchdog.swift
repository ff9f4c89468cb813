import CRUDThreads
import Synchronization

/// Tells the service manager that the daemon is alive, as long as every event loop is (sd_notify(3), `WATCHDOG=1`).
///
/// A thread of its own sends the messages, so that a service manager that does not read them blocks no loop.
final class Watchdog: Sendable {
    private let manager: ServiceManager
    private let beats: [Heartbeat]
    private let end = OneShot<Bool>()

    /// What one event loop counts up.
    final class Heartbeat: Sendable {
        private let count = Atomic<UInt64>(0)

        func beat() { count.add(1, ordering: .relaxed) }
        fileprivate var current: UInt64 { count.load(ordering: .relaxed) }
    }

    /// How often a loop beats in one interval, at the least.
    static let beatsPerInterval = 3

    init(_ manager: ServiceManager, _ beats: [Heartbeat]) {
        self.manager = manager
        self.beats = beats
    }

    func start(every interval: Duration) throws(ThreadFailure) {
        _ = try Thread(named: "watchdog") { [self] in
            var last = beats.map(\.current)
            while end.wait(atMost: interval) == nil {
                let current = beats.map(\.current)
                if zip(last, current).allSatisfy(<) { manager.alive() }
                last = current
            }
        }
    }

    func stop() { end.resolve(true) }
}
