import CRUDPluginKit

/// The sequence numbers of changes that several daemons make.
///
/// No daemon can give them out in the order of commits without keeping the others waiting. So each change has the
/// number of its transaction, above the place that it has in that. Transactions are committed in another order than
/// that of their numbers; but below the lowest one that is still in progress when a snapshot is taken (`xmin`) nothing
/// can be committed any more, and whatever has been is shown by every later snapshot
/// (<https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT>). So far a feed is complete,
/// and in one order for all who read it.
///
/// It is read up to the highest number below that bound that a change has: a server that crashes, or its successor, may
/// give out numbers again of transactions that it has not written down, and all of those are higher than that of any
/// one that is committed.
enum TransactionNumber {
    private static let placeBits: UInt64 = 20
    /// The most mutations of a batch.
    static let maximumPlaces = 1 << placeBits - 1

    /// The lowest number of a transaction that may still be committed, as the statement sees it.
    static let bound = "(txid_snapshot_xmin(txid_current_snapshot()) << \(placeBits))"
    /// Above all numbers of transactions so far.
    static let next = "(txid_snapshot_xmax(txid_current_snapshot()) << \(placeBits))"
    /// Above that of a transaction that has been waited for, and of all before it.
    static let nextAfterOwn = "((txid_current() + 1) << \(placeBits))"

    /// The number of a change of the transaction.
    static func sql(place: String) -> String { "((txid_current() << \(placeBits)) + \(place))" }
}

extension StatementScope {
    /// A parameter as the value of a column.
    func value(_ column: String, _ parameter: Int) -> String {
        column == "sequence" && histories != nil
            ? TransactionNumber.sql(place: "$\(parameter)") : "$\(parameter)"
    }

    /// Which removals are shown: a transaction that has a lower number may have waited for that of the removal, and
    /// stored the record again.
    var removalCondition: String {
        if histories == nil { return "" }
        let record = "SELECT 1 FROM \(table) AS r WHERE r.id = removed.id AND r.sequence < removed.sequence"
        return " AND NOT EXISTS (\(record))"
    }

    /// What a statement is given for the sequence number of a mutation; 0: it has none.
    func number(of mutation: Mutation<PostgreSQLCollection>, at position: Int) -> Int64 {
        guard histories != nil else { return Int64(clamping: mutation.sequence) }
        return mutation.sequence == 0 ? 0 : Int64(position + 1)
    }
}
