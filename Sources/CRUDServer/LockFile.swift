import CLinux
import CRUDStorage
import Glibc

/// The lock that a daemon holds as long as it lives on something that is its own: `PATH.lock`.
///
/// The file is never removed: removing it would let two daemons lock two files of one name.
final class LockFile {
    /// How long a lock is waited for. When a daemon is killed while it starts a process, that process holds the lock
    /// until it executes its program, since flock(2) belongs to the open file, which it has a copy of.
    private static let timeout = Duration.seconds(2)

    private let descriptor: CInt

    /// Takes the lock; waits for two seconds at most.
    ///
    /// - Parameter usage: what another daemon does that holds it, such as "listens at PATH".
    /// - Throws: ``SystemError`` with `EADDRINUSE` if another daemon holds the lock.
    init(of path: String, usage: String) throws(SystemError) {
        descriptor = clinux_open(path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("cannot open \(path).lock") }
        let start = ContinuousClock.now
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK, start.duration(to: .now) < Self.timeout {
                usleep(10_000)
                continue
            }
            if errno == EWOULDBLOCK { throw SystemError(message: "another daemon \(usage)", code: EADDRINUSE) }
            throw SystemError("cannot lock \(path).lock")
        }
    }

    deinit { close(descriptor) }
}
