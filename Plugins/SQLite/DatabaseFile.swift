import CRUDPluginKit
import CSQLite
import Glibc

/// The file that a backend stores everything in: making it, and telling ours from others.
///
/// `application_id` marks a file as ours and `user_version` is the version of its schema, so that a file of another
/// program is never written to, and a file of a later version never misread.
struct DatabaseFile {
    /// "crud" in ASCII; see <https://www.sqlite.org/pragma.html#pragma_application_id>.
    static let applicationID: Int64 = 0x6372_7564
    /// How long an opening may wait for another process to release the file. It is tried again later.
    private static let busyTimeoutMilliseconds: Int32 = 250

    let path: String
    let host: Host

    /// Opens the file for writing and makes it if it is not there; its schema may be empty or that of an older version.
    ///
    /// - Throws: `invalidOptions` for a file that is not ours or can never be, `notFound` where the host expects
    ///   another storage, otherwise what SQLite says.
    func open(_ synchronous: SQLiteOptions.Synchronous) throws(StorageFailure) -> Connection {
        if host.expectsStorage { try find() } else { try create() }
        let connection = try Connection(
            path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: Self.busyTimeoutMilliseconds)
        // SQLite falls back to reading where it may not write.
        guard sqlite3_db_readonly(connection.handle, nil) == 0 else {
            throw StorageFailure(.unavailable, "\(path) is read-only")
        }
        try checkIdentity(connection)
        try host.requireStorage(identity(connection), in: path)
        try configure(connection, synchronous)
        return connection
    }

    private func find() throws(StorageFailure) {
        var status = stat()
        if stat(path, &status) != 0, errno == ENOENT { try host.requireStorage(nil, in: path) }
        try checkKind()
    }

    /// What tells the storage from others; 0 where an older version has made it, nil where it is empty.
    private func identity(_ connection: Connection) throws(StorageFailure) -> UInt64? {
        guard let version = try connection.integer("PRAGMA user_version"), version > 0 else { return nil }
        return version < Schema.version ? 0 : try Schema(connection: connection).identity
    }

    /// Makes an empty file that only its owner may read, whatever the umask; SQLite's other files get the same mode.
    private func create() throws(StorageFailure) {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code = errno
            switch code {
            case EEXIST: return try checkKind()
            case ENOENT: throw unusable("lies in a directory that does not exist")
            case ENOTDIR, ENAMETOOLONG, ELOOP: throw unusable("cannot be made: \(errorText(code))")
            default: throw StorageFailure(.unavailable, "cannot make \(path): \(errorText(code))")
            }
        }
        // The umask can only have taken bits away.
        fchmod(descriptor, 0o600)
        Glibc.close(descriptor)
    }

    private func checkKind() throws(StorageFailure) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = errno
            // A link to nowhere; any other reason may pass.
            if code == ENOENT || code == ELOOP { throw unusable("cannot be opened: \(errorText(code))") }
            throw StorageFailure(.unavailable, "cannot open \(path): \(errorText(code))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw unusable("is not a regular file") }
    }

    /// Refuses a file that is neither empty nor ours; nothing is written yet.
    private func checkIdentity(_ connection: Connection) throws(StorageFailure) {
        let applicationID: Int64
        do {
            applicationID = try connection.integer("PRAGMA application_id") ?? 0
        } catch {
            throw sqlite3_errcode(connection.handle) == SQLITE_NOTADB ? unusable("is not a SQLite database") : error
        }
        if applicationID == Self.applicationID {
            let version = try connection.integer("PRAGMA user_version") ?? 0
            guard version <= Schema.version else {
                throw unusable("has schema version \(version), and this plugin knows \(Schema.version) at most")
            }
            return
        }
        let tables = try connection.integer("SELECT count(*) FROM sqlite_schema") ?? 0
        guard applicationID == 0, tables == 0 else { throw unusable("is a database of another program") }
    }

    private func configure(
        _ connection: Connection, _ synchronous: SQLiteOptions.Synchronous
    ) throws(StorageFailure) {
        var mode = ""
        try connection.query("PRAGMA journal_mode = WAL") { mode = $0.text(0) }
        guard mode == "wal" else { throw unusable("lies where SQLite cannot keep a write-ahead log") }
        // secure_delete: Debian's SQLite overwrites what is deleted with zeros. FAST leaves that out where it would
        // mean writing further pages, as for those of a dropped collection.
        try connection.execute(
            """
            PRAGMA synchronous = \(synchronous.rawValue); PRAGMA secure_delete = FAST;
            PRAGMA journal_size_limit = \(WriteAheadLog.maximumKeptBytes)
            """)
    }

    private func unusable(_ reason: String) -> StorageFailure {
        StorageFailure(.invalidOptions, "\(path) \(reason)", pointer: "/path")
    }
}
