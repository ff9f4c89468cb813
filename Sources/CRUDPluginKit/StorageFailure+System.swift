#if canImport(Glibc)
public import Glibc

extension StorageFailure {
    /// The failure for an error number of the system, by default the last one.
    ///
    /// - Parameter action: what was being done, as in "cannot open /srv/files".
    public init(errno code: Int32 = errno, _ action: String) {
        self.init(Status(errno: code), "\(action): \(String(cString: strerror(code)))")
    }
}

extension StorageFailure.Status {
    fileprivate init(errno code: Int32) {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: self = .noSpace
        case EBADMSG, EUCLEAN: self = .corrupt
        case ENAMETOOLONG, E2BIG, ERANGE, EOPNOTSUPP: self = .unsupported
        // Among them ENOTDIR, EISDIR, ENOTEMPTY and ELOOP: somebody has put something else in the place.
        case EACCES, EPERM, EROFS, EIO, EMFILE, ENFILE, ENOMEM, EBUSY, EINTR, ENOENT, EEXIST, ENOTDIR, EISDIR,
            ENOTEMPTY, ELOOP, ESTALE, ENXIO, ENODEV, ETIMEDOUT:
            self = .unavailable
        default: self = .internal
        }
    }
}
#endif
