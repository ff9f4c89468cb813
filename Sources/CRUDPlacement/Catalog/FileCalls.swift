import CLinux
import Glibc

/// The system calls by which a catalog is written. Tests make each of them fail.
package struct FileCalls: Sendable {
    /// Each returns what the system call returns, and sets errno.
    package var open: @Sendable (_ path: String, _ flags: CInt) -> CInt = { clinux_open($0, $1, 0o600) }
    package var write: @Sendable (CInt, [UInt8]) -> Int = { descriptor, bytes in
        bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }
    /// Allocates the first bytes of a file without changing its size.
    package var allocate: @Sendable (CInt, Int) -> CInt = { clinux_allocate($0, off_t($1)) }
    package var sync: @Sendable (CInt) -> CInt = { fdatasync($0) }
    package var truncate: @Sendable (CInt, Int) -> CInt = { ftruncate($0, off_t($1)) }
    package var rename: @Sendable (_ old: String, _ new: String) -> CInt = { Glibc.rename($0, $1) }
    /// Makes the entries of a directory durable.
    package var syncDirectory: @Sendable (String) -> CInt = { path in
        let descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY, 0)
        guard descriptor >= 0 else { return -1 }
        let result = fsync(descriptor)
        let code = errno
        Glibc.close(descriptor)
        errno = code
        return result
    }

    package init() {}
}
