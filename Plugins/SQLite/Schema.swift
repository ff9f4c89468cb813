import CRUDPluginKit
import CSQLite

/// The tables of this plugin, and what older versions of them need.
///
/// Nothing here takes longer for a larger table. SQLite's own statements would: CREATE INDEX visits every row, and
/// ALTER TABLE checks every row of a STRICT table when it adds a column. So collections have tables that are not
/// strict, and an index on a column that was just added, in which no row has a value, is made without visiting them.
struct Schema {
    static let version: Int64 = 4

    let connection: Connection

    /// Whether the file is empty or has a schema of an older version.
    var isOutdated: Bool {
        get throws(StorageFailure) { try connection.integer("PRAGMA user_version") != Self.version }
    }

    /// What tells this storage from others; 0 where somebody has emptied the table.
    var identity: UInt64 {
        get throws(StorageFailure) {
            UInt64(clamping: try connection.integer("SELECT max(identity) FROM crudd_storage") ?? 0)
        }
    }

    /// Makes what is missing of this version; to be called in a transaction.
    func update() throws(StorageFailure) {
        // Another process may have been quicker.
        guard try isOutdated else { return }
        let hasCollections = try connection.integer("PRAGMA user_version") == 1
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS crudd_collections (
                number INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                format TEXT NOT NULL,
                table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
                UNIQUE (name, format)
            ) STRICT;
            CREATE TABLE IF NOT EXISTS crudd_indexes (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                collection INTEGER NOT NULL,
                path TEXT NOT NULL,
                filled_below ANY NOT NULL,
                UNIQUE (collection, path)
            ) STRICT;
            CREATE TABLE IF NOT EXISTS crudd_sequence (ceiling INTEGER NOT NULL) STRICT;
            CREATE TABLE IF NOT EXISTS crudd_history (
                collection INTEGER PRIMARY KEY,
                identity INTEGER NOT NULL,
                forgotten INTEGER NOT NULL
            ) STRICT;
            CREATE TABLE IF NOT EXISTS crudd_storage (identity INTEGER NOT NULL) STRICT;
            INSERT INTO crudd_storage (identity) SELECT \(History.makeIdentity())
            WHERE NOT EXISTS (SELECT 1 FROM crudd_storage);
            """)
        if hasCollections { try updateCollections() }
        try connection.execute(
            """
            PRAGMA application_id = \(DatabaseFile.applicationID);
            PRAGMA user_version = \(Self.version)
            """)
    }

    /// Gives the tables of version 1 the columns of version 2. Versions 3 and 4 have a table more each.
    private func updateCollections() throws(StorageFailure) {
        var tables: [(number: Int64, name: String)] = []
        try connection.query(
            """
            SELECT number, table_name FROM crudd_collections
            JOIN sqlite_schema AS tables ON type = 'table' AND tables.name = table_name COLLATE NOCASE
            """
        ) { tables.append(($0.integer(0), $0.text(1))) }
        for table in tables {
            var indexes: [String] = []
            try connection.query(
                "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 COLLATE NOCASE", [table.name]
            ) { indexes.append($0.text(0)) }
            for index in indexes where index.hasPrefix("crudd_index_") {
                try connection.execute("DROP INDEX \(quotedIdentifier(index))")
            }
            try editText(
                """
                UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - length(' STRICT'))
                WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND sql LIKE '%) STRICT'
                """, [table.name])
            let identifier = quotedIdentifier(table.name)
            try connection.execute(
                """
                ALTER TABLE \(identifier) ADD COLUMN expires_at INTEGER;
                ALTER TABLE \(identifier) ADD COLUMN sequence INTEGER
                """)
            try makeExpiryIndex(table.number, table.name)
        }
    }

    // MARK: Indexes of new columns

    /// Makes the index by expiry, of a table in which nothing expires yet.
    func makeExpiryIndex(_ collection: Int64, _ tableName: String) throws(StorageFailure) {
        try makeEmptyIndex(
            expiryIndex(collection), on: tableName, columns: "expires_at, id", where: "expires_at IS NOT NULL")
    }

    /// Makes an index of keys, of a table in which no record has one.
    func makeKeyIndex(_ index: Int64, _ tableName: String) throws(StorageFailure) {
        let key = keyColumn(index)
        try makeEmptyIndex("crudd_index_\(index)", on: tableName, columns: "\(key), id", where: "\(key) IS NOT NULL")
    }

    /// Makes an index that no row of the table belongs to: for another table, which is empty, and hands it over. An
    /// empty table gets it directly, as after an edit of its text SQLite parses the whole schema again.
    private func makeEmptyIndex(
        _ name: String, on tableName: String, columns: String, where condition: String
    ) throws(StorageFailure) {
        let definition = "(\(columns)) WHERE \(condition)"
        let table = quotedIdentifier(tableName)
        guard try connection.integer("SELECT 1 FROM \(table) LIMIT 1") != nil else {
            return try connection.execute("CREATE INDEX \(name) ON \(table) \(definition)")
        }
        try connection.execute(
            """
            CREATE TABLE crudd_new_index (\(columns));
            CREATE INDEX \(name) ON crudd_new_index \(definition)
            """)
        try editText(
            "UPDATE sqlite_schema SET tbl_name = ?1, sql = ?2 WHERE type = 'index' AND name = ?3",
            [tableName, "CREATE INDEX \(name) ON \(table) \(definition)", name])
        try connection.execute("DROP TABLE crudd_new_index")
    }

    /// Changes the text of the schema where what is stored stays the same
    /// (<https://www.sqlite.org/lang_altertable.html#otheralter>). A change of the schema by other statements has to
    /// follow in the same transaction, so that other connections notice.
    private func editText(_ sql: String, _ parameters: [String]) throws(StorageFailure) {
        try connection.execute("PRAGMA writable_schema = ON")
        do {
            try connection.query(sql, parameters) { _ in }
        } catch {
            try? connection.execute("PRAGMA writable_schema = OFF")
            throw error
        }
        try connection.execute("PRAGMA writable_schema = RESET")
    }
}
