import Glibc
import Synchronization

/// A daemon that may be killed and started again while clients use it.
package final class RestartedDaemon: Sendable {
    private let state: Mutex<(daemon: Daemon, kills: Int, isRunning: Bool)>

    package init(_ daemon: Daemon) {
        state = Mutex((daemon, 0, true))
    }

    /// The one that runs, or has been killed and is about to be followed by another.
    package var current: Daemon { state.withLock(\.daemon) }

    /// How often it was killed.
    package var kills: Int { state.withLock(\.kills) }

    /// A new connection and how often it has been killed before; nil while it is being started. (The socket of one that
    /// has been killed may still take connections.)
    func connect() throws -> (kills: Int, connection: Connection)? {
        let (daemon, kills, isRunning) = state.withLock { $0 }
        return isRunning ? (kills, try daemon.connect()) : nil
    }

    /// Kills it, and starts it again on the same installation.
    package func restart() throws {
        let daemon = state.withLock { state in
            state.kills += 1
            state.isRunning = false
            return state.daemon
        }
        daemon.process.signal(SIGKILL)
        let next = try daemon.restarted()
        state.withLock { state in
            state.daemon = next
            state.isRunning = true
        }
    }
}
