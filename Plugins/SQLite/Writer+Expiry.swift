import CRUDPluginKit
import CSQLite

// Expired records are found by the index on their expiry, and the next one to expire too: a call that has nothing to
// remove begins no transaction.
extension Writer {
    /// Remembers a removal where the collection does that.
    ///
    /// - Parameter id: what the statement is bound to stays until it has run.
    func remember(
        _ id: UnsafeRawBufferPointer, of collection: SQLiteCollection, sequence: UInt64, now: Int64
    ) throws(StorageFailure) {
        guard collection.layout.keepsSequences, sequence != 0 else { return }
        let statement = try connection.statement(.remember, collection.scope)
        try connection.check(statement.bind(1, text: id))
        try connection.check(statement.bind(2, integer: Int64(clamping: sequence)))
        try connection.check(statement.bind(3, integer: now))
        try connection.run(statement)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<SQLiteCollection>) throws(StorageFailure) -> Int64? {
        let collection = request.collection
        let next = try nextExpiry(in: collection)
        guard let next, next <= request.now, request.limit > 0 else { return next }
        var removed: [[UInt8]] = []
        let left = try transaction(.frees) { (ceiling: inout UInt64) throws(StorageFailure) in
            removed = []
            for row in try expired(in: collection, request) where try remove(row.number, from: collection) {
                let sequence = request.firstSequence + UInt64(removed.count)
                // The array outlives the statement.
                try row.id.span.withUnsafeBytes { (id) throws(StorageFailure) in
                    try remember(id, of: collection, sequence: sequence, now: request.now)
                }
                removed.append(row.id)
                ceiling = max(ceiling, sequence)
            }
            return try nextExpiry(in: collection)
        }
        for (index, id) in removed.enumerated() where RecordRules.isValidID(id.span.bytes) {
            request.emit(index, id: id.span.bytes)
        }
        return left
    }

    private func nextExpiry(in collection: SQLiteCollection) throws(StorageFailure) -> Int64? {
        let statement = try connection.statement(.nextExpiry, collection.scope)
        defer { statement.reset() }
        return try connection.step(statement) ? statement.expiry(0) : nil
    }

    private func expired(
        in collection: SQLiteCollection, _ request: borrowing ExpiryRequest<SQLiteCollection>
    ) throws(StorageFailure) -> [(number: Int64, id: [UInt8])] {
        let statement = try connection.statement(.expired, collection.scope)
        defer { statement.reset() }
        try connection.check(statement.bind(1, integer: request.now))
        try connection.check(statement.bind(2, integer: Int64(request.limit)))
        var rows: [(number: Int64, id: [UInt8])] = []
        while try connection.step(statement) { rows.append((statement.integer(0), Array(statement.bytes(1)))) }
        return rows
    }

    /// Removes a row, and says whether that took effect: a trigger that somebody has put on the table may ignore it.
    private func remove(_ row: Int64, from collection: SQLiteCollection) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(.removeRow, collection.scope)
        try connection.check(statement.bind(1, integer: row))
        try connection.run(statement)
        return connection.changes > 0
    }

    // MARK: History

    func trimHistory(_ request: borrowing TrimRequest<SQLiteCollection>) throws(StorageFailure) -> History {
        let number = request.collection.number
        try requireHistory(of: request.collection)
        let old = """
            SELECT sequence FROM (
                SELECT sequence, removed_at FROM \(removalTable(number)) ORDER BY sequence LIMIT \(request.limit)
            ) WHERE removed_at < \(request.before)
            """
        var trimmed = 0
        if let last = try connection.integer("SELECT max(sequence) FROM (\(old)) HAVING count(*) > 0") {
            trimmed = try transaction(.frees, waiting: .brief) { () throws(StorageFailure) in
                try connection.execute("DELETE FROM \(removalTable(number)) WHERE sequence IN (\(old))")
                let count = connection.changes
                try connection.execute(
                    "UPDATE crudd_history SET forgotten = max(forgotten, \(last)) WHERE collection = \(number)")
                return count
            }
        }
        var history: History?
        try connection.query("SELECT identity, forgotten FROM crudd_history WHERE collection = \(number)") {
            history = History(
                identity: UInt64(clamping: $0.integer(0)), forgotten: UInt64(clamping: $0.integer(1)),
                trimmed: trimmed)
        }
        guard let history else {
            throw StorageFailure(.corrupt, "crudd_history lacks the row of table \(request.collection.tableName)")
        }
        return history
    }

    /// Has a collection continue the history of another one.
    func take(_ history: borrowing TakenHistory<SQLiteCollection>) throws(StorageFailure) {
        let collection = history.collection
        try requireHistory(of: collection)
        try transaction(.grows) { (ceiling: inout UInt64) throws(StorageFailure) in
            for position in 0..<history.removalCount {
                let removal = history.removal(position)
                try remember(removal.id, of: collection, sequence: removal.sequence, now: history.now)
            }
            try connection.execute(
                """
                UPDATE crudd_history SET identity = \(history.identity), forgotten = \(history.forgotten)
                WHERE collection = \(collection.number)
                """)
            ceiling = max(ceiling, history.lastSequence)
        }
    }

    private func requireHistory(of collection: SQLiteCollection) throws(StorageFailure) {
        guard collection.layout.keepsSequences else {
            throw StorageFailure(
                .unsupported, "table \(collection.tableName) was not opened to keep sequence numbers")
        }
    }
}
