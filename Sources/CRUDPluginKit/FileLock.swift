public import Glibc
import Synchronization

/// A lock on a file beside a storage, which keeps other processes from using the storage as long as this object lives.
///
/// The file is made with mode 0600 if it is not there, and never removed: removing it would let two processes lock two
/// files of one name. The lock is flock(2)'s, which ends with the process that holds it.
public final class FileLock: Sendable {
    private let descriptor: Int32

    /// A process that was killed holds its lock until the kernel has ended it.
    private static let timeout = Duration.seconds(1)

    /// Takes the lock, waiting for a second.
    ///
    /// - Parameters:
    ///   - path: that of the file.
    ///   - directory: the descriptor of the directory that `path` begins in, if it is not absolute.
    ///   - shownAs: what errors call the file; by default `path`.
    /// - Throws: ``StorageFailure`` with `unavailable` if another process, or another object of this one, holds the
    ///   lock, or the file cannot be opened or locked.
    public init(
        _ path: String, in directory: Int32 = AT_FDCWD, shownAs: String? = nil
    ) throws(StorageFailure) {
        let shown = shownAs ?? path
        let flags = O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        descriptor = openat(directory, path, flags, 0o600)
        guard descriptor >= 0 else {
            throw StorageFailure(.unavailable, StorageFailure("cannot open \(shown)").message)
        }
        let end = ContinuousClock.now + Self.timeout
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            guard code == EWOULDBLOCK || code == EINTR else {
                throw StorageFailure(.unavailable, StorageFailure(errno: code, "cannot lock \(shown)").message)
            }
            guard ContinuousClock.now < end else {
                throw StorageFailure(.unavailable, "another process has locked \(shown)")
            }
            usleep(10_000)
        }
    }

    deinit {
        if descriptor < 0 { return }
        // A process that is just being started has the descriptor too, until it executes its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}

// MARK: Within a process

extension FileLock {
    /// The locks that objects of this process share, by path.
    private static let shared = Mutex<[String: Shared]>([:])

    private struct Shared {
        weak var lock: FileLock?
    }

    /// The lock on a file as all of this process hold it, for storage that one process may open more than once.
    ///
    /// - Throws: ``StorageFailure`` as ``init(_:in:shownAs:)``.
    public static func shared(_ path: String) throws(StorageFailure) -> FileLock {
        // Others wait as well: they would wait for the same process.
        try shared.withLock { (locks) throws(StorageFailure) in
            if let lock = locks[path]?.lock { return lock }
            let lock = try FileLock(path)
            locks[path] = Shared(lock: lock)
            return lock
        }
    }
}
