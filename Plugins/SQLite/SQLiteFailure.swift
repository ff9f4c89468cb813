import CRUDPluginKit
import CSQLite
import Glibc

extension StorageFailure {
    /// The failure for a result code of SQLite, extended or not (<https://www.sqlite.org/rescode.html>).
    ///
    /// - Parameters:
    ///   - systemError: the `errno` beneath it, if any.
    ///   - action: what was being done, as in "cannot open the database".
    init(sqlite code: Int32, systemError: Int32, message: String, action: String) {
        var text = "\(action): \(message)"
        if systemError != 0 { text += " (\(errorText(systemError)))" }
        self.init(Self.status(code, systemError), text)
    }

    private static func status(_ code: Int32, _ systemError: Int32) -> Status {
        switch code & 0xFF {
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH, SQLITE_CANTOPEN, SQLITE_NOMEM:
            .unavailable
        case SQLITE_FULL: .noSpace
        case SQLITE_IOERR:
            // SQLite says SQLITE_FULL for ENOSPC alone, and not from every call.
            [ENOSPC, EDQUOT, EFBIG].contains(systemError) ? .noSpace : .unavailable
        case SQLITE_CORRUPT:
            // A page that the disk cannot read is SQLITE_IOERR_CORRUPTFS, which a statement reports as SQLITE_CORRUPT.
            [EIO, ENXIO, ERANGE].contains(systemError) ? .unavailable : .corrupt
        case SQLITE_NOTADB: .corrupt
        case SQLITE_TOOBIG, SQLITE_CONSTRAINT: .unsupported
        case SQLITE_INTERRUPT: .interrupted
        default: .internal
        }
    }
}

/// What the system says of an error number.
func errorText(_ number: Int32) -> String {
    String(cString: strerror(number))
}
