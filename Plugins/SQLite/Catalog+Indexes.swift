import CRUDPluginKit
import CSQLite

// The keys of an index stand in a column `crudd_key_NUMBER` of the collection's table and in a SQLite index on that
// column and the id, and the table `crudd_indexes` says which number belongs to which property path. A number is used
// once: SQLite removes no column without visiting every row, so the column of a removed index stays behind, unused.
// Later changes of a small table's indexes remove it.
//
// In that column NULL stands for a record that nobody has looked at since the index was made, an empty blob for one
// that is known to have no key. The SQLite index holds all but the former, so that it is empty when it is made, and
// `filled_below` says how far the host has come with them, by id: no record with a lower id has NULL there, unless it
// has expired. Once none has, it is an empty blob, which is greater than any text. That stays true whatever other
// programs write, as two triggers put an empty blob into rows that they insert or change.

extension Catalog {
    /// An index, as `crudd_indexes` has it.
    private struct Index {
        var number: Int64
        var path: String
    }

    /// The numbers of a collection's indexes by their paths; nil if these are not the ones that are there, or something
    /// that belongs to them is missing.
    ///
    /// - Parameter keepsSequences: whether there has to be an order by sequence number, and a history.
    func indexes(
        of collection: SQLiteCollection, _ paths: [String], keepsSequences: Bool
    ) throws(StorageFailure) -> [Int64]? {
        let existing = try indexes(of: collection)
        let names = try indexNames(of: collection)
        let isHistoryInPlace = try isHistoryInPlace(of: collection.number, names, keepsSequences: keepsSequences)
        let numbers = paths.compactMap { path in existing.first { $0.path.utf8.elementsEqual(path.utf8) }?.number }
        guard numbers.count == paths.count, existing.count == paths.count, isHistoryInPlace else {
            return nil
        }
        guard numbers.allSatisfy({ names.contains("crudd_index_\($0)") }),
            names.contains(expiryIndex(collection.number))
        else { return nil }
        // Without a column of keys there is no trigger, which SQLite finds by reading the text of all tables.
        if numbers.isEmpty, try keyColumns(of: collection).isEmpty { return [] }
        let triggers = Self.triggers(of: collection, Set(numbers))
        for trigger in triggers where try !has(trigger, on: collection) { return nil }
        return numbers
    }

    /// Makes the indexes that are missing and drops those of ours that are no longer wanted; to be called in a
    /// transaction.
    ///
    /// - Returns: the numbers of the indexes by their paths.
    func setIndexes(
        of collection: SQLiteCollection, _ paths: [String], keepsSequences: Bool
    ) throws(StorageFailure) -> [Int64] {
        let table = quotedIdentifier(collection.tableName)
        var kept: [Index] = []
        let names = try indexNames(of: collection)
        let former = try indexes(of: collection)
        for index in former {
            // Somebody may have dropped the SQLite index, and what was written since has no entry in it.
            let isComplete = names.contains("crudd_index_\(index.number)")
            if isComplete, paths.contains(where: { $0.utf8.elementsEqual(index.path.utf8) }) {
                kept.append(index)
            } else {
                try connection.execute(
                    """
                    DROP INDEX IF EXISTS crudd_index_\(index.number);
                    DELETE FROM crudd_indexes WHERE number = \(index.number)
                    """)
            }
        }
        for trigger in Self.triggers(of: collection, []) {
            try connection.execute("DROP TRIGGER IF EXISTS \(trigger.name)")
        }
        try dropLeftColumns(of: collection, former, atMost: paths.count - kept.count + 1)
        var numbers: [Int64] = []
        for path in paths {
            if let index = kept.first(where: { $0.path.utf8.elementsEqual(path.utf8) }) {
                numbers.append(index.number)
            } else {
                numbers.append(try makeIndex(of: collection, path))
            }
        }
        for trigger in Self.triggers(of: collection, Set(numbers)) {
            if let sql = trigger.sql { try connection.execute(sql) }
        }
        if keepsSequences { try keepHistory(of: collection) } else { try dropHistory(of: collection.number) }
        // It is there unless somebody has dropped it.
        try connection.execute(
            """
            CREATE INDEX IF NOT EXISTS \(expiryIndex(collection.number)) ON \(table) (expires_at, id)
            WHERE expires_at IS NOT NULL
            """)
        return numbers
    }

    /// The indexes whose records have been filled, deleted or overwritten beyond what `crudd_indexes` says, by the name
    /// of their table.
    func overtakenIndexes(now: Int64) throws(StorageFailure) -> [(number: Int64, tableName: String)] {
        var unfilled: [(number: Int64, tableName: String)] = []
        try connection.query(
            """
            SELECT crudd_indexes.number, table_name FROM crudd_indexes
            JOIN crudd_collections ON crudd_collections.number = collection WHERE typeof(filled_below) = 'text'
            """
        ) { unfilled.append(($0.integer(0), $0.text(1))) }
        var overtaken: [(number: Int64, tableName: String)] = []
        for index in unfilled {
            let isOvertaken = try connection.integer(
                """
                SELECT filled_below IS NOT
                \(CollectionStatement.firstUnfilledSQL(index.number, quotedIdentifier(index.tableName), now: "\(now)"))
                FROM crudd_indexes WHERE number = \(index.number)
                """)
            if isOvertaken == 1 { overtaken.append(index) }
        }
        return overtaken
    }

    // MARK: Parts

    private func makeIndex(of collection: SQLiteCollection, _ path: String) throws(StorageFailure) -> Int64 {
        let table = quotedIdentifier(collection.tableName)
        let lowestID = "coalesce((SELECT min(id) FROM \(table)), x'')"
        try connection.query(
            "INSERT INTO crudd_indexes (collection, path, filled_below) VALUES (\(collection.number), ?1, \(lowestID))",
            [path]
        ) { _ in }
        let number = sqlite3_last_insert_rowid(connection.handle)
        try connection.execute("ALTER TABLE \(table) ADD COLUMN \(keyColumn(number)) BLOB")
        try Schema(connection: connection).makeKeyIndex(number, collection.tableName)
        return number
    }

    // A table of which SQLite rewrites all in some milliseconds.
    private static let maximumRewrittenRows = 1000
    private static let maximumRewrittenLength = 4096

    /// Removes the columns of indexes that earlier changes have removed, where that is quickly done.
    ///
    /// - Parameters:
    ///   - former: the indexes until now, whose columns may still be read.
    ///   - maximum: how many: each takes as long as a new one, whose statement has SQLite parse the schema again, too.
    private func dropLeftColumns(
        of collection: SQLiteCollection, _ former: [Index], atMost maximum: Int
    ) throws(StorageFailure) {
        let used = Set(former.map { keyColumn($0.number) })
        let left = try keyColumns(of: collection).filter { !used.contains($0) }
        if left.isEmpty { return }
        let table = quotedIdentifier(collection.tableName)
        let isLong = "WHERE length(item) > \(Self.maximumRewrittenLength)"
        for rest in ["LIMIT 1 OFFSET \(Self.maximumRewrittenRows)", "\(isLong) LIMIT 1"]
        where try connection.integer("SELECT 1 FROM \(table) \(rest)") != nil {
            return
        }
        var count = 0
        for column in left where count < maximum {
            do throws(StorageFailure) {
                try connection.execute("ALTER TABLE \(table) DROP COLUMN \(quotedIdentifier(column))")
                count += 1
            } catch {
                // Something of the administrator's names the column.
                guard sqlite3_errcode(connection.handle) == SQLITE_ERROR else { throw error }
            }
        }
    }

    private func indexes(of collection: SQLiteCollection) throws(StorageFailure) -> [Index] {
        var indexes: [Index] = []
        try connection.query("SELECT number, path FROM crudd_indexes WHERE collection = \(collection.number)") {
            indexes.append(Index(number: $0.integer(0), path: $0.text(1)))
        }
        return indexes
    }

    /// The names of the SQLite indexes on the collection's table.
    func indexNames(of collection: SQLiteCollection) throws(StorageFailure) -> Set<String> {
        var names: Set<String> = []
        try connection.query("PRAGMA main.index_list(\(quotedIdentifier(collection.tableName)))") {
            names.insert($0.text(1))
        }
        return names
    }

    /// The columns of all indexes that are and of some that have been.
    private func keyColumns(of collection: SQLiteCollection) throws(StorageFailure) -> [String] {
        var columns: [String] = []
        try connection.query("PRAGMA main.table_info(\(quotedIdentifier(collection.tableName)))") {
            columns.append($0.text(1))
        }
        let prefix = "crudd_key_"
        return columns.filter { $0.hasPrefix(prefix) && Int64($0.dropFirst(prefix.count)) != nil }
    }

    /// Whether a trigger is there with its text; without one it must be missing.
    private func has(
        _ trigger: (name: String, sql: String?), on collection: SQLiteCollection
    ) throws(StorageFailure) -> Bool {
        var existing: String?
        try connection.query(
            "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1 AND tbl_name = ?2 COLLATE NOCASE",
            [trigger.name, collection.tableName]
        ) { existing = $0.text(0) }
        return existing == trigger.sql
    }

    /// What makes the records unkeyed that other programs insert or change: names, and text unless they are not needed.
    ///
    /// A changed record gets a new revision with it, unless the other program has set one: keys that the host makes of
    /// the item as it was have to fail by their precondition.
    private static func triggers(of collection: SQLiteCollection, _ indexes: Set<Int64>) -> [(
        name: String, sql: String?
    )] {
        let table = quotedIdentifier(collection.tableName)
        let columns = indexes.sorted().map(keyColumn)
        let forget = "UPDATE \(table) SET \(columns.map { "\($0) = x''" }.joined(separator: ", "))"
        let isThisRow = "WHERE rowid = new.rowid"
        let isUnkeyed = columns.map { "new.\($0) IS NULL" }.joined(separator: " OR ")
        let insertion = "crudd_insert_\(collection.number)"
        let update = "crudd_update_\(collection.number)"
        if columns.isEmpty { return [(insertion, nil), (update, nil)] }
        return [
            (
                insertion,
                """
                CREATE TRIGGER \(insertion) AFTER INSERT ON \(table)
                WHEN \(isUnkeyed) BEGIN \(forget) \(isThisRow); END
                """
            ),
            // The daemon gives a record a new number with each write.
            (
                update,
                """
                CREATE TRIGGER \(update) AFTER UPDATE OF id, item, expires_at ON \(table)
                WHEN new.sequence IS NULL OR new.sequence IS old.sequence BEGIN \(forget),
                revision = CASE WHEN new.revision IS old.revision THEN lower(hex(randomblob(16))) ELSE new.revision END
                \(isThisRow); END
                """
            ),
        ]
    }
}
