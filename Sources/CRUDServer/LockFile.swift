import CLinux
import CRUDStorage
import Glibc

/// The lock that a daemon holds as long as it lives on something that is its own: `PATH.lock`.
///
/// The file is never removed: removing it would let two daemons lock two files of one name.
final class LockFile {
    private let descriptor: CInt

    /// Takes the lock.
    ///
    /// - Parameter usage: what another daemon does that holds it, such as "listens at PATH".
    /// - Throws: ``SystemError`` with `EADDRINUSE` if another daemon holds the lock.
    init(of path: String, usage: String) throws(SystemError) {
        descriptor = clinux_open(path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("cannot open \(path).lock") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { throw SystemError(message: "another daemon \(usage)", code: EADDRINUSE) }
            throw SystemError("cannot lock \(path).lock")
        }
    }

    deinit { close(descriptor) }
}
