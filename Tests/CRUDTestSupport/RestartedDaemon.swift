import Glibc
import Synchronization

/// A daemon that may be killed and started again while clients use it.
package final class RestartedDaemon: Sendable {
    private let state: Mutex<(daemon: Daemon, kills: Int)>

    package init(_ daemon: Daemon) {
        state = Mutex((daemon, 0))
    }

    /// The one that runs, or is being started.
    package var current: Daemon { state.withLock(\.daemon) }

    /// How often it was killed.
    package var kills: Int { state.withLock(\.kills) }

    /// Kills it, and starts it again on the same installation.
    package func restart() throws {
        let daemon = state.withLock { state in
            state.kills += 1
            return state.daemon
        }
        daemon.process.signal(SIGKILL)
        let next = try daemon.restarted()
        state.withLock { $0.daemon = next }
    }
}
