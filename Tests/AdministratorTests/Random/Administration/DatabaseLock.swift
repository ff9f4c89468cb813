import CRUDTestSupport
import CSQLite

/// A database that another program writes to and does not finish: nobody else can write to it.
final class DatabaseLock {
    private let handle: OpaquePointer

    /// - Returns: nil if it is not there yet, or is being written to.
    init?(_ path: String) {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE, nil)
        guard code == SQLITE_OK, let opened, sqlite3_exec(opened, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK else {
            sqlite3_close(opened)
            return nil
        }
        handle = opened
    }

    deinit {
        sqlite3_close(handle)
    }
}
