import CRUDPluginKit

// A collection that was opened to keep sequence numbers has an index on them, one on the ids of rows that have none (as
// somebody else has inserted them), a table `crudd_removed_NUMBER` of what was removed, and a row of `crudd_history`.
// Table and row belong together: where one of them is missing, both are made again, with a new identity. All of it ends
// when the collection is opened without sequence numbers.

extension Catalog {
    /// Whether everything of it is there, or, where it is not wanted, nothing.
    ///
    /// - Parameter indexNames: the names of the table's indexes.
    func isHistoryInPlace(
        of collection: Int64, _ indexNames: Set<String>, keepsSequences: Bool
    ) throws(StorageFailure) -> Bool {
        let parts = [
            indexNames.contains(sequenceIndex(collection)), indexNames.contains(unsequencedIndex(collection)),
            try hasTable(removalTable(collection)),
            try connection.integer("SELECT 1 FROM crudd_history WHERE collection = \(collection)") != nil,
        ]
        return parts.allSatisfy { $0 == keepsSequences }
    }

    /// Makes what is missing, to be called in a transaction.
    func keepHistory(of collection: SQLiteCollection) throws(StorageFailure) {
        let number = collection.number
        let table = quotedIdentifier(collection.tableName)
        try connection.execute(
            """
            CREATE INDEX IF NOT EXISTS \(sequenceIndex(number)) ON \(table) (sequence) WHERE sequence IS NOT NULL;
            CREATE INDEX IF NOT EXISTS \(unsequencedIndex(number)) ON \(table) (id) WHERE sequence IS NULL
            """)
        let isComplete = try connection.integer(
            """
            SELECT 1 FROM crudd_history WHERE collection = \(number)
            AND EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)
            """, [removalTable(number)])
        if isComplete != nil { return }
        try connection.execute(
            """
            DROP TABLE IF EXISTS \(removalTable(number));
            CREATE TABLE \(removalTable(number)) (
                sequence INTEGER PRIMARY KEY,
                id TEXT NOT NULL,
                removed_at INTEGER NOT NULL
            ) STRICT;
            REPLACE INTO crudd_history (collection, identity, forgotten)
            VALUES (\(number), \(History.makeIdentity()), 0)
            """)
    }

    /// Forgets it all, to be called in a transaction.
    func dropHistory(of collection: Int64) throws(StorageFailure) {
        try connection.execute(
            """
            DROP INDEX IF EXISTS \(sequenceIndex(collection));
            DROP INDEX IF EXISTS \(unsequencedIndex(collection));
            DROP TABLE IF EXISTS \(removalTable(collection));
            DELETE FROM crudd_history WHERE collection = \(collection)
            """)
    }
}
