import CRUDPluginKit
import CSQLite
import Glibc

/// The room of the database file, which is allocated before it is needed.
///
/// A commit only writes to the write-ahead log; the database file grows when the log is copied. If the disk had no room
/// by then, the log could not be copied, and so neither be written from its start again: nothing could be committed any
/// more, a deletion no more than anything else. Hence SQLite may use no page (`max_page_count`) that the file has no
/// room for: such a write fails by itself, and is repeated once the file has been extended.
final class DatabaseRoom {
    /// The file's size is a multiple of this.
    static let stepBytes = 1 << 20

    private let connection: Connection
    private let path: String
    private let pageBytes: Int
    private var limit = 0

    init(connection: Connection, path: String) throws(StorageFailure) {
        self.connection = connection
        self.path = path
        pageBytes = Int(try connection.integer("PRAGMA page_size") ?? 4096)
        var step = Int32(Self.stepBytes)
        // Has SQLite keep the size a multiple of this when it cuts the file down after a checkpoint, too.
        connection.control(SQLITE_FCNTL_CHUNK_SIZE, &step)
        try update()
    }

    /// Takes the file's size for the limit; to be called whenever SQLite may have changed it.
    func update() throws(StorageFailure) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw StorageFailure("cannot examine \(path)") }
        let pages = Int(status.st_size) / pageBytes
        if pages == limit { return }
        limit = pages
        // Where more pages are used by now, SQLite takes those for the limit.
        try connection.execute("PRAGMA max_page_count = \(max(1, pages))")
    }

    /// Extends the file by so many bytes, or as far as the disk has room.
    ///
    /// - Returns: whether it has grown.
    func extend(by bytes: Int) -> Bool {
        let pages = limit
        var size = Int64(pages * pageBytes + bytes)
        // It writes to each block, so that the room is there and not only promised. What was extended before it has
        // failed counts.
        connection.control(SQLITE_FCNTL_SIZE_HINT, &size)
        try? update()
        return limit > pages
    }
}
