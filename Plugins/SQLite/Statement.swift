import CSQLite

/// A prepared statement. Its ``Connection`` owns it.
///
/// What is bound is not copied and must stay until the statement is reset; what a column gives is SQLite's own memory
/// and stays until the next step or reset.
struct Statement {
    let handle: OpaquePointer

    /// Binds text of any size; the result code is SQLite's.
    func bind(_ index: Int32, text: UnsafeRawBufferPointer) -> Int32 {
        guard let start = text.baseAddress else { return sqlite3_bind_text(handle, index, "", 0, nil) }
        let characters = start.assumingMemoryBound(to: CChar.self)
        return sqlite3_bind_text64(
            handle, index, characters, sqlite3_uint64(text.count), nil, UInt8(SQLITE_UTF8))
    }

    /// Binds a blob of any size; the result code is SQLite's.
    func bind(_ index: Int32, blob: UnsafeRawBufferPointer) -> Int32 {
        guard let start = blob.baseAddress else { return sqlite3_bind_zeroblob(handle, index, 0) }
        return sqlite3_bind_blob64(handle, index, start, sqlite3_uint64(blob.count), nil)
    }

    /// Binds a copy of text; the result code is SQLite's.
    func bind(_ index: Int32, copying text: [UInt8]) -> Int32 {
        text.withUnsafeBytes { text in
            let characters = text.bindMemory(to: CChar.self)
            return sqlite3_bind_text64(
                handle, index, characters.baseAddress, sqlite3_uint64(text.count), Self.transient, UInt8(SQLITE_UTF8))
        }
    }

    /// Binds text, or NULL for nil; the result code is SQLite's.
    func bind(_ index: Int32, textOrNull text: UnsafeRawBufferPointer?) -> Int32 {
        text.map { bind(index, text: $0) } ?? sqlite3_bind_null(handle, index)
    }

    func bind(_ index: Int32, integer: Int64) -> Int32 {
        sqlite3_bind_int64(handle, index, integer)
    }

    /// Binds an integer, or NULL for 0; the result code is SQLite's.
    func bind(_ index: Int32, integerOrNull integer: Int64) -> Int32 {
        integer == 0 ? sqlite3_bind_null(handle, index) : sqlite3_bind_int64(handle, index, integer)
    }

    /// The bytes of a text or blob, as they are stored; none for NULL.
    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        // In this order: asked as a blob, text is handed out without a conversion, and the size is that of the blob.
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
    }

    func text(_ column: Int32) -> String {
        String(decoding: bytes(column), as: UTF8.self)
    }

    func integer(_ column: Int32) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    /// Makes it ready for new values. SQLite's result code only repeats what the last step said.
    func reset() {
        sqlite3_reset(handle)
    }

    /// SQLITE_TRANSIENT, which tells SQLite to copy what is bound.
    // A macro with this cast in it, which Swift's importer leaves out.
    private static let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
