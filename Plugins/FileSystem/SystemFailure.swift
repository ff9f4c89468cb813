import CRUDPluginKit
import Glibc

extension StorageFailure {
    /// The failure for an error number of the system, by default the last one.
    ///
    /// - Parameter action: what was being done, as in "cannot open /srv/files".
    init(errno code: Int32 = errno, _ action: String) {
        self.init(Self.status(code), "\(action): \(String(cString: strerror(code)))")
    }

    private static func status(_ code: Int32) -> Status {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: .noSpace
        case EBADMSG, EUCLEAN: .corrupt
        case ENAMETOOLONG, E2BIG, ERANGE, EOPNOTSUPP: .unsupported
        // Among them ENOTDIR, EISDIR, ENOTEMPTY and ELOOP: somebody has put something else in the place.
        case EACCES, EPERM, EROFS, EIO, EMFILE, ENFILE, ENOMEM, EBUSY, EINTR, ENOENT, EEXIST, ENOTDIR, EISDIR,
            ENOTEMPTY, ELOOP, ESTALE, ENXIO, ENODEV, ETIMEDOUT:
            .unavailable
        default: .internal
        }
    }
}
