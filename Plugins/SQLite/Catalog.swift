import CRUDPluginKit
import CSQLite

/// The table `crudd_collections`, which says what table holds a collection.
///
/// A collection has one table for each format that it was ever opened with, so that records of another format are
/// out of sight, not misread. The table has the collection's name unless SQLite or this plugin reserves it or another
/// object of the database has it already (SQLite does not tell `clients` from `Clients`); then it is called
/// `crudd_NUMBER_NAME`, which nothing else can be.
struct Catalog {
    let connection: Connection

    /// The table of a collection; nil if there is none.
    func tableName(_ name: String, _ format: SQLiteCollection.Format) throws(StorageFailure) -> String? {
        var tableName: String?
        try connection.query(
            "SELECT table_name FROM crudd_collections WHERE name = ?1 AND format = ?2", [name, format.rawValue]
        ) { tableName = $0.text(0) }
        guard let tableName else { return nil }
        guard try isTaken(tableName) else {
            throw StorageFailure(
                .corrupt,
                "collection \(name) has lost its table \(tableName); to start anew, delete its row of crudd_collections"
            )
        }
        return tableName
    }

    /// Makes the table of a collection that has none; to be called in a transaction.
    func createTable(_ name: String, _ format: SQLiteCollection.Format) throws(StorageFailure) -> String {
        let number = try connection.integer("SELECT 1 + coalesce(max(number), 0) FROM crudd_collections") ?? 1
        let isTaken = try isTaken(name)
        let tableName = isTaken || isReserved(name) ? "crudd_\(number)_\(name)" : name
        try connection.query(
            "INSERT INTO crudd_collections (number, name, format, table_name) VALUES (\(number), ?1, ?2, ?3)",
            [name, format.rawValue, tableName]
        ) { _ in }
        // The revision stands before the item, whose overflow pages need not be walked for it then. Its default is for
        // rows that people insert by hand.
        try connection.execute(
            """
            CREATE TABLE \(quotedIdentifier(tableName)) (
                id TEXT PRIMARY KEY NOT NULL,
                revision TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
                item \(format.columnType) NOT NULL
            ) STRICT
            """)
        return tableName
    }

    /// Drops all tables of a collection, to be called in a transaction, and says whether there were any.
    func dropTables(_ name: String) throws(StorageFailure) -> Bool {
        var tableNames: [String] = []
        try connection.query("SELECT table_name FROM crudd_collections WHERE name = ?1", [name]) {
            tableNames.append($0.text(0))
        }
        for tableName in tableNames {
            try connection.execute("DROP TABLE IF EXISTS \(quotedIdentifier(tableName))")
        }
        try connection.query("DELETE FROM crudd_collections WHERE name = ?1", [name]) { _ in }
        return !tableNames.isEmpty
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

    private func isTaken(_ name: String) throws(StorageFailure) -> Bool {
        try connection.integer("SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE", [name]) != nil
    }
}
