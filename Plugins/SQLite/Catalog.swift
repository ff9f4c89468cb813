import CRUDPluginKit
import CSQLite

/// The table `crudd_collections`, which says what table holds a collection.
///
/// A collection has one table for each format that it was ever opened with, so that records of another format are
/// hidden, not misread. The table has the collection's name unless SQLite or this plugin reserves it or another object
/// of the database has it already (SQLite does not tell `clients` from `Clients`); then it is called
/// `crudd_NUMBER_NAME`, which nothing else can be.
struct Catalog {
    let connection: Connection

    /// A row of the table.
    struct Entry {
        var number: Int64
        var tableName: String
    }

    /// Where a collection is; nil if it is nowhere.
    func entry(_ name: String, _ format: SQLiteCollection.Format) throws(StorageFailure) -> Entry? {
        var entry: Entry?
        try connection.query(
            "SELECT number, table_name FROM crudd_collections WHERE name = ?1 AND format = ?2", [name, format.rawValue]
        ) { entry = Entry(number: $0.integer(0), tableName: $0.text(1)) }
        guard let entry else { return nil }
        guard try hasTable(entry.tableName) else {
            throw StorageFailure(
                .corrupt,
                """
                the table \(entry.tableName) of collection \(name) is missing; \
                to start with an empty one, delete its row of crudd_collections
                """)
        }
        return entry
    }

    /// Makes the table of a collection that has none; to be called in a transaction.
    func createTable(_ name: String, _ format: SQLiteCollection.Format) throws(StorageFailure) -> Entry {
        let number = try connection.integer("SELECT 1 + coalesce(max(number), 0) FROM crudd_collections") ?? 1
        let isTaken = try isTaken(name)
        let tableName = isTaken || isReserved(name) ? "crudd_\(number)_\(name)" : name
        try connection.query(
            "INSERT INTO crudd_collections (number, name, format, table_name) VALUES (\(number), ?1, ?2, ?3)",
            [name, format.rawValue, tableName]
        ) { _ in }
        // The item stands last: what is behind it in an item of many pages is found only by reading them. The default
        // of the revision is for rows that people insert by hand.
        try connection.execute(
            """
            CREATE TABLE \(quotedIdentifier(tableName)) (
                id TEXT PRIMARY KEY NOT NULL,
                revision TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
                expires_at INTEGER,
                sequence INTEGER,
                item \(format.columnType) NOT NULL
            )
            """)
        try Schema(connection: connection).makeExpiryIndex(number, tableName)
        return Entry(number: number, tableName: tableName)
    }

    /// Drops all tables of a collection, to be called in a transaction, and says whether there were any.
    func dropTables(_ name: String) throws(StorageFailure) -> Bool {
        var entries: [Entry] = []
        try connection.query("SELECT number, table_name FROM crudd_collections WHERE name = ?1", [name]) {
            entries.append(Entry(number: $0.integer(0), tableName: $0.text(1)))
        }
        for entry in entries {
            try connection.execute("DROP TABLE IF EXISTS \(quotedIdentifier(entry.tableName))")
            try dropHistory(of: entry.number)
        }
        try connection.query(
            "DELETE FROM crudd_indexes WHERE collection IN (SELECT number FROM crudd_collections WHERE name = ?1)",
            [name]
        ) { _ in }
        try connection.query("DELETE FROM crudd_collections WHERE name = ?1", [name]) { _ in }
        return !entries.isEmpty
    }

    func names() throws(StorageFailure) -> [String] {
        var names: [String] = []
        try connection.query("SELECT DISTINCT name FROM crudd_collections ORDER BY name") { names.append($0.text(0)) }
        return names
    }

    private func isReserved(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("sqlite_") || name.hasPrefix("crudd_")
    }

    /// Whether there is a table of that name. SQLite looks that up; a search of its schema reads the text of all
    /// tables. A statement and not a function of the same name, which a table of that name would hide.
    func hasTable(_ name: String) throws(StorageFailure) -> Bool {
        try connection.integer("PRAGMA main.table_info(\(quotedIdentifier(name)))") != nil
    }

    private func isTaken(_ name: String) throws(StorageFailure) -> Bool {
        try connection.integer("SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE", [name]) != nil
    }
}
