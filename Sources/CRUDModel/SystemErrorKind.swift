#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Darwin
#endif

/// What the error of a system call is due to that concerns a file which the configuration names.
package enum SystemErrorKind {
    /// Another path or mode in the configuration would do.
    case configuration
    /// The system fails, or is out of something, such as descriptors.
    case system

    /// - Parameter code: errno.
    package init(_ code: Int32) {
        switch code {
        case EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOEXEC, ENOTDIR, EOPNOTSUPP, EPERM:
            self = .configuration
        default: self = .system
        }
    }
}
