import CRUDPluginKit

// A collection that was opened to keep sequence numbers has a row of `crudd_history`, a table `crudd_removed_NUMBER`
// of what was removed, an index on the numbers, and one on the ids of rows that have none (as SQL has inserted them).
// The row is made with the table, or what it holds is forgotten: so it has a new identity. All of it ends when the
// collection is opened without sequence numbers, the row first.

extension Catalog {
    private var histories: String { schema.table("crudd_history") }

    /// Whether a collection is to keep sequence numbers.
    func hasHistory(_ collection: Int64) throws(StorageFailure) -> Bool {
        guard try schema.exists(removalTable(collection), connection, wait) else { return false }
        return try query("SELECT 1 FROM \(histories) WHERE collection = \(collection)", [], "read crudd_history")
            .rowCount > 0
    }

    /// Begins to remember removals, to be called in a transaction.
    func keepHistory(of collection: PostgreSQLCollection) throws(StorageFailure) {
        let number = collection.number
        if try hasHistory(number) { return }
        let what = "keep the changes of table \(collection.tableName)"
        let removals = removalTable(number)
        // With the id in its key a sharded server can distribute it like the records.
        try run(
            """
            CREATE TABLE IF NOT EXISTS \(schema.table(removals)) (
                sequence bigint NOT NULL,
                id text COLLATE "C" NOT NULL,
                removed_at bigint NOT NULL,
                CONSTRAINT \(removals)_sequence PRIMARY KEY (sequence, id)
            )
            """, what)
        try query("DELETE FROM \(schema.table(removals))", [], what)
        try query("DELETE FROM \(histories) WHERE collection = \(number)", [], what)
        try query(
            """
            INSERT INTO \(histories) (collection, identity, forgotten) VALUES (\(number), \(History.makeIdentity()), 0)
            """, [], what)
    }

    /// The collections whose removals are remembered.
    func collectionsWithHistory() throws(StorageFailure) -> Set<Int64> {
        let result = try query("SELECT collection FROM \(schema.table("crudd_history"))", [], "read crudd_history")
        return Set((0..<result.rowCount).map { result.integer($0, 0) })
    }

    /// Forgets what was removed, to be called in a transaction.
    func dropHistory(of collection: Int64) throws(StorageFailure) {
        try query("DELETE FROM \(histories) WHERE collection = \(collection)", [], "forget changes")
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

    // MARK: Numbers of transactions

    private static let foreign = "sequence >= \(TransactionNumber.next)"

    /// Whether rows, or what is remembered of removals, have numbers that no transaction here has given: the tables
    /// were brought from another cluster, say.
    func hasForeignSequences(_ collection: PostgreSQLCollection) throws(StorageFailure) -> Bool {
        guard schema.numbersChanges, collection.layout.keepsSequences else { return false }
        let tables = [collection.tableName, removalTable(collection.number)].map(schema.table)
        let found = tables.map { "EXISTS (SELECT 1 FROM \($0) WHERE \(Self.foreign))" }
        return try query(
            "SELECT \(found.joined(separator: " OR "))", [], "look at the changes of table \(collection.tableName)"
        ).integer(0, 0) == 1
    }

    /// Takes these numbers away: the host has the rows numbered again. Those that are written meanwhile keep theirs.
    func forgetForeignSequences(of collection: PostgreSQLCollection) throws(StorageFailure) {
        let what = "number the rows of table \(collection.tableName)"
        let table = schema.table(collection.tableName)
        try query(
            """
            UPDATE \(table) AS r SET sequence = NULL
            FROM (SELECT id, sequence FROM \(table) WHERE \(Self.foreign)) AS found
            WHERE r.id = found.id AND r.sequence = found.sequence
            """, [], what)
        try query("DELETE FROM \(schema.table(removalTable(collection.number))) WHERE \(Self.foreign)", [], what)
    }

    // MARK: Trimming

    /// Has the transaction fail where another daemon does the upkeep by now.
    func lockUpkeep(_ lease: Lease) throws(StorageFailure) {
        let sql = CollectionStatement.fenceSQL(schema.table("crudd_lease"))
        let result = try connection.query(sql, lease.upkeep.fenceParameters, [.int8, .int8], wait)
        if result.error != nil { lease.upkeep.lose() }
        try result.check("lock the row of upkeep")
    }

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
            """
            DELETE FROM \(schema.table(removalTable(collection)))
            WHERE sequence = ANY (ARRAY(\(old))) AND sequence <= \(last)
            """, [], what)
        try query(
            "UPDATE \(histories) SET forgotten = greatest(forgotten, \(last)) WHERE collection = \(collection)", [],
            what)
        return trimmed.affectedRows
    }

    // MARK: Histories of other collections

    /// How many removals one statement stores.
    private static let removalsAtOnce = 500

    /// Continues the history of another collection, to be called in a transaction.
    func takeHistory(
        of collection: Int64, _ identity: UInt64, forgotten: UInt64, _ removals: [(id: [UInt8], sequence: UInt64)],
        at now: Int64
    ) throws(StorageFailure) {
        let what = "take over the changes of collection \(collection)"
        for first in stride(from: 0, to: removals.count, by: Self.removalsAtOnce) {
            let part = removals[first..<min(first + Self.removalsAtOnce, removals.count)]
            var parameters = Parameters()
            for removal in part { parameters.add(copying: removal.id) }
            // Sharded servers take no array here.
            let rows = part.enumerated().map { "(\($1.sequence), $\($0 + 1), \(now))" }
            try connection.query(
                """
                INSERT INTO \(schema.table(removalTable(collection))) (sequence, id, removed_at)
                VALUES \(rows.joined(separator: ", ")) ON CONFLICT DO NOTHING
                """, parameters, part.map { _ in .text }, wait
            ).check(what)
        }
        try query(
            """
            UPDATE \(histories) SET identity = \(identity), forgotten = \(forgotten) WHERE collection = \(collection)
            """, [], what)
    }

    private func old(_ collection: Int64, before: Int64, limit: Int) -> String {
        let condition = schema.numbersChanges ? " AND sequence < \(TransactionNumber.bound)" : ""
        return """
            SELECT sequence FROM (
                SELECT sequence, removed_at FROM \(schema.table(removalTable(collection)))
                ORDER BY sequence, id LIMIT \(limit)
            ) AS first WHERE removed_at < \(before)\(condition)
            """
    }
}

/// The table of what was removed from a collection.
func removalTable(_ collection: Int64) -> String { "crudd_removed_\(collection)" }
