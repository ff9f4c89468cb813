import CRUDPluginKit

// A collection that was opened to keep sequence numbers has an index on them, one on the ids of rows that have none (as
// somebody else has inserted them), a table `crudd_removed_NUMBER` of what was removed, and a row of `crudd_history`.
// Table and row belong together: where one of them is missing, both are made again, with a new identity. All of it ends
// when the collection is opened without sequence numbers.

extension Catalog {
    private var histories: String { schema.table("crudd_history") }

    private func sequenceIndex(_ collection: Int64) -> String { "crudd_\(collection)_sequence" }
    private func unsequencedIndex(_ collection: Int64) -> String { "crudd_\(collection)_unsequenced" }

    /// Whether everything of it is there, or, where it is not wanted, nothing.
    func isHistoryInPlace(of collection: Int64, keepsSequences: Bool) throws(StorageFailure) -> Bool {
        var count = 0
        let relations = [sequenceIndex(collection), unsequencedIndex(collection), removalTable(collection)]
        for relation in relations where try schema.exists(relation, connection, wait) { count += 1 }
        if try hasRow(collection) { count += 1 }
        return count == (keepsSequences ? relations.count + 1 : 0)
    }

    private func hasRow(_ collection: Int64) throws(StorageFailure) -> Bool {
        try query("SELECT 1 FROM \(histories) WHERE collection = \(collection)", [], "read crudd_history").rowCount > 0
    }

    /// Makes what is missing, to be called in a transaction.
    func keepHistory(of collection: PostgreSQLCollection) throws(StorageFailure) {
        let number = collection.number
        let table = schema.table(collection.tableName)
        let what = "keep the changes of table \(collection.tableName)"
        try run(
            """
            CREATE INDEX IF NOT EXISTS \(sequenceIndex(number)) ON \(table) (sequence) WHERE sequence IS NOT NULL;
            CREATE INDEX IF NOT EXISTS \(unsequencedIndex(number)) ON \(table) (id) WHERE sequence IS NULL
            """, what)
        let removals = removalTable(number)
        if try schema.exists(removals, connection, wait), try hasRow(number) { return }
        // With the id in its key a sharded server can distribute it like the records.
        try run(
            """
            DROP TABLE IF EXISTS \(schema.table(removals));
            CREATE TABLE \(schema.table(removals)) (
                sequence bigint NOT NULL,
                id text COLLATE "C" NOT NULL,
                removed_at bigint NOT NULL,
                CONSTRAINT \(removals)_sequence PRIMARY KEY (sequence, id)
            );
            DELETE FROM \(histories) WHERE collection = \(number);
            INSERT INTO \(histories) (collection, identity, forgotten) VALUES (\(number), \(History.makeIdentity()), 0)
            """, what)
    }

    /// Forgets it all, to be called in a transaction.
    func dropHistory(of collection: Int64) throws(StorageFailure) {
        try run(
            """
            DROP INDEX IF EXISTS \(schema.table(sequenceIndex(collection)));
            DROP INDEX IF EXISTS \(schema.table(unsequencedIndex(collection)));
            DROP TABLE IF EXISTS \(schema.table(removalTable(collection)));
            DELETE FROM \(histories) WHERE collection = \(collection)
            """, "forget changes")
    }

    // MARK: Copies

    /// Takes the sequence numbers from rows that have those of others, to be called in a transaction; the host gives
    /// them new ones.
    func forgetSequences(of collection: PostgreSQLCollection, _ ids: [[UInt8]]) throws(StorageFailure) {
        var parameters = Parameters()
        let table = schema.table(collection.tableName)
        parameters.add(array: ids)
        try connection.query(
            "UPDATE \(table) SET sequence = NULL WHERE id = ANY ($1)", parameters, [.textArray], wait
        ).check("number the copied rows of table \(collection.tableName)")
    }

    // MARK: Trimming

    /// What is remembered, and how many of the first `limit` removals were made before a moment.
    func history(
        of collection: Int64, before: Int64, limit: Int
    ) throws(StorageFailure) -> (history: History, old: Int) {
        let result = try query(
            """
            SELECT identity, forgotten, (SELECT count(*) FROM (\(old(collection, before: before, limit: limit))) AS old)
            FROM \(histories) WHERE collection = \(collection)
            """, [], "read crudd_history")
        guard result.rowCount == 1 else {
            throw StorageFailure(.corrupt, "crudd_history lacks the row of collection \(collection)")
        }
        let history = History(
            identity: UInt64(clamping: result.integer(0, 0)), forgotten: UInt64(clamping: result.integer(0, 1)))
        return (history, Int(result.integer(0, 2)))
    }

    /// Forgets these, to be called in a transaction.
    ///
    /// - Returns: how many there were.
    func trimHistory(of collection: Int64, before: Int64, limit: Int) throws(StorageFailure) -> Int {
        let what = "trim the changes of collection \(collection)"
        let old = old(collection, before: before, limit: limit)
        let last = try query("SELECT max(sequence) FROM (\(old)) AS old", [], what).integer(0, 0)
        let trimmed = try query(
            "DELETE FROM \(schema.table(removalTable(collection))) WHERE sequence = ANY (ARRAY(\(old)))", [], what)
        try query(
            "UPDATE \(histories) SET forgotten = greatest(forgotten, \(last)) WHERE collection = \(collection)", [],
            what)
        return trimmed.affectedRows
    }

    private func old(_ collection: Int64, before: Int64, limit: Int) -> String {
        """
        SELECT sequence FROM (
            SELECT sequence, removed_at FROM \(schema.table(removalTable(collection)))
            ORDER BY sequence, id LIMIT \(limit)
        ) AS first WHERE removed_at < \(before)
        """
    }
}

/// The table of what was removed from a collection.
func removalTable(_ collection: Int64) -> String { "crudd_removed_\(collection)" }
