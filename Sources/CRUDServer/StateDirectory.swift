import CLinux
import CRUDStorage
import Glibc

/// The directory in which the daemon keeps its state.
enum StateDirectory {
    /// Makes the directory if it is not there.
    static func make(_ directory: String) throws(SystemError) {
        guard mkdir(directory, 0o700) == 0 else {
            if errno == EEXIST { return }
            throw SystemError("cannot make \(directory)")
        }
        // The parent may be a directory in which the daemon may make entries and which it may not read.
        let parent = clinux_open(directory + "/..", O_RDONLY | O_DIRECTORY, 0)
        guard parent >= 0 else { return }
        _ = fsync(parent)
        close(parent)
    }
}
