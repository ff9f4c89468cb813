package import CRUDModel
package import CRUDStorage
import Glibc

/// Why the catalog is not what it was to be.
package enum CatalogError: Error {
    /// Nothing has changed: a system call has failed.
    case failed(SystemError)
    /// Nothing has changed: an entry is not any more what the change was based on.
    case stale(name: [UInt8])
    /// Nothing has changed: no start would accept the placement, in which a place has two roles. That is a defect.
    case invalid(name: [UInt8])
    /// Nothing has changed: an earlier record is in doubt, and its file cannot be written.
    case blocked(SystemError)
    /// It is not known whether the record will be there after a restart, see ``CatalogFile``.
    case inDoubt(SystemError)

    /// What a client is told.
    package var error: CRUDError {
        switch self {
        case .failed(let error), .blocked(let error):
            return CRUDError(error.isFullDisk ? .noSpace : .unavailable, error.description)
        case .stale(let name):
            return CRUDError(.unavailable, "the placement of collection \(quoted(name)) has changed meanwhile")
        case .invalid(let name):
            return CRUDError(.internalError, "the placement of collection \(quoted(name)) must not be recorded")
        case .inDoubt(let error):
            return CRUDError(.outcomeUnknown, "\(error); it is retried, and what it concerns is closed until then")
        }
    }
}

extension SystemError {
    /// Whether there is no room on the disk, or in a quota.
    var isFullDisk: Bool { code == ENOSPC || code == EDQUOT }
}

/// Why a file is not a catalog that this daemon can use.
package struct CatalogDamage: Error, CustomStringConvertible {
    package let path: String
    /// From 1.
    package let line: Int
    package let reason: String

    package var description: String { "\(path), line \(line): \(reason)" }
}
