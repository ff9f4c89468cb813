import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization

/// Writes to a cluster as any other client of it would, and knows for how long that was not possible.
final class OutageProbe: Sendable {
    private struct State {
        var isOver = false
        var last = ContinuousClock.now
        var longest = Duration.zero
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()
    private let thread: Thread

    init(_ cluster: PatroniCluster) throws {
        thread = try Thread(named: "probe") { [shared] in
            while !shared.state.withLock(\.isOver) {
                let isDone = (try? cluster.query("INSERT INTO probe VALUES (1)", within: .seconds(3))) ?? nil
                if isDone != nil {
                    shared.state.withLock { state in
                        state.longest = max(state.longest, state.last.duration(to: .now))
                        state.last = .now
                    }
                }
                poll(nil, 0, 50)
            }
        }
    }

    deinit {
        shared.state.withLock { $0.isOver = true }
        thread.join()
    }

    /// Since this was asked for last, or the probe began.
    func takeOutage() -> Duration {
        shared.state.withLock { state in
            defer { state.longest = .zero }
            return state.longest
        }
    }
}
