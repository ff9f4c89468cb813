import CRUDPluginKit
import Synchronization

/// The ownership of a schema: a row of `crudd_lease`.
///
/// There is one row, number 1, for all daemons. Its holder renews it every ``renewalInterval`` and may be sure of it
/// for ``certainty`` after it has sent a renewal; others may take it over when it has not been renewed for
/// ``duration``, by the server's clock. That keeps what the host remembers of records coherent. Daemons that share a
/// schema have a row each, which no other daemon wants, and which is renewed likewise; row 0 is that of ``Upkeep``. One
/// that shares it and one that does not exclude each other: each first makes or takes its own row and then looks at
/// those of the others, so that of two that come at once at least one sees the other and withdraws.
///
/// Writes do not depend on clocks. Each transaction that writes begins by locking the row in share mode, on condition
/// that its number `fence` is the one that the holder has got with the lease; taking it over, or ``advance(_:_:)``,
/// raises that number and so waits for transactions in progress and refuses later ones.
final class Lease: Sendable {
    static let renewalInterval: Int64 = 2_000_000_000
    static let certainty: Int64 = 8_000_000_000
    private static let duration = "interval '10 seconds'"

    private let schema: Schema
    private let table: String
    /// Tells this holder from all others, ever.
    private let holder = HolderIdentity.make()
    /// Which row it is.
    private let row: Int64
    private let isShared: Bool
    private let number = Atomic<Int64>(0)
    /// Whether the server numbers changes (``TransactionNumber``); set before there is a transaction.
    private let isNumbering = Atomic(false)
    private let sequenceCeiling = Atomic<UInt64>(0)
    /// Used where several daemons share the schema.
    let upkeep = Upkeep()

    init(_ schema: Schema, isShared: Bool) {
        self.schema = schema
        table = schema.table("crudd_lease")
        self.isShared = isShared
        row = isShared ? .random(in: 2 ... .max) : 1
    }

    /// It is not used any more.
    func end() { HolderIdentity.end(holder) }

    /// The number that transactions of the holder expect.
    var fence: Int64 { number.load(ordering: .acquiring) }

    var numbersChanges: Bool { isNumbering.load(ordering: .acquiring) }

    /// Above this no sequence number has been used. It is raised, by ``reserve(_:_:_:)``, before that happens.
    var ceiling: UInt64 { sequenceCeiling.load(ordering: .acquiring) }

    /// What the statements of transactions are made for.
    var scope: StatementScope { StatementScope(table: table, removals: "", itemType: .text, indexes: []) }

    /// Of ``CollectionStatement/fenceSQL(_:)``, for a number that the holder has had with the lease.
    func parameters(of fence: Int64) -> Parameters {
        var parameters = Parameters()
        parameters.add(row)
        parameters.add(fence)
        return parameters
    }

    /// The SQLSTATE of a division by zero.
    static let lossState = "22012"

    // MARK: The holder

    /// Acquires the lease.
    ///
    /// - Throws: `unavailable` while another daemon holds it, or others share the schema.
    func acquire(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        if isShared { return try acquireShare(connection, wait) }
        let held = try connection.query(
            "SELECT coalesce(holder, ''), coalesce(place, '') FROM \(table) WHERE number = 1", Parameters(), [], wait
        ).check("read the lease")
        guard held.rowCount == 1 else { throw StorageFailure(.corrupt, "\(table) has no row") }
        let previous = held.text(0, 0)
        var parameters = Parameters()
        parameters.add(holder)
        parameters.add(HolderIdentity.place)
        // One that was killed on this machine need not be waited for.
        parameters.add(HolderIdentity.isDead(previous) ? previous : "")
        let result = try confirmed(
            """
            UPDATE \(table) SET holder = $1, place = $2, fence = fence + 1, expires_at = now() + \(Self.duration)
            WHERE number = 1 AND (holder IS NULL OR holder = $1 OR holder = $3 OR expires_at < now())
            RETURNING fence, sequence_ceiling
            """, parameters, [.text, .text, .text], connection, wait, "acquire the lease")
        guard result.rowCount == 1 else {
            throw StorageFailure(.unavailable, "the schema is in use by \(held.text(0, 1))")
        }
        take(result)
        do throws(StorageFailure) {
            try removeShares(connection, wait)
            if result.integer(0, 1) == Self.numbersOfTransactions { try continueNumbers(connection, wait) }
        } catch {
            try? release(connection, wait)
            throw error
        }
    }

    /// Removes the rows of daemons that have shared the schema and are gone: what one of them may still want to write
    /// is refused.
    ///
    /// - Throws: `unavailable` while one of them is there.
    private func removeShares(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        let shares = try connection.query(
            "SELECT number, coalesce(holder, ''), coalesce(place, '') FROM \(table) WHERE number > 1",
            Parameters(), [], wait
        ).check("read the rows of the lease")
        for share in 0..<shares.rowCount {
            let isOver = HolderIdentity.isDead(shares.text(share, 1)) ? "true" : "expires_at < now()"
            var parameters = Parameters()
            parameters.add(shares.integer(share, 0))
            let removed = try confirmed(
                "DELETE FROM \(table) WHERE number = $1 AND \(isOver) RETURNING number", parameters, [.int8],
                connection, wait, "remove a row of the lease")
            guard removed.rowCount == 1 else {
                throw StorageFailure(
                    .unavailable, "the schema is in use by \(shares.text(share, 2)), which shares it (shared: true)")
            }
        }
    }

    /// The place of the ceiling where the server has numbered changes.
    private static let numbersOfTransactions: Int64 = -1

    /// Has the server number changes from now on; to be called before there are any.
    func numberChanges(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        _ = try confirmed(
            """
            UPDATE \(table) SET sequence_ceiling = \(Self.numbersOfTransactions)
            WHERE number = 1 AND sequence_ceiling <> \(Self.numbersOfTransactions)
                AND EXISTS (SELECT 1 FROM \(table) WHERE number = \(row))
            """, Parameters(), [], connection, wait, "note who numbers changes")
        sequenceCeiling.store(0, ordering: .releasing)
        isNumbering.store(true, ordering: .releasing)
    }

    /// Has the numbers of the only daemon begin above all that there are; no other one is there any more. Tables may
    /// have been brought from a cluster whose transactions had higher numbers.
    private func continueNumbers(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        let highest = try schema.highestSequence(connection, wait)
        let ceiling = "greatest(\(TransactionNumber.nextAfterOwn), \(highest))"
        let result = try update("sequence_ceiling = \(ceiling)", connection, wait)
        guard result.rowCount == 1 else {
            throw StorageFailure(.unavailable, "another daemon has taken the schema over")
        }
        take(result)
    }

    /// Has the other daemons find out, before they write again, what has been declared; to be called in the transaction
    /// that declares it.
    var raiseOthers: String { "UPDATE \(table) SET fence = fence + 1 WHERE number > 1 AND number <> \(row)" }

    /// Where another daemon that shares the schema is; nil: there is none.
    func otherDaemon(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> String? {
        let others = try connection.query(
            """
            SELECT coalesce(holder, ''), coalesce(place, '') FROM \(table)
            WHERE number > 1 AND number <> \(row) AND expires_at >= now()
            """, Parameters(), [], wait
        ).check("read the rows of the lease")
        for other in 0..<others.rowCount where !HolderIdentity.isDead(others.text(other, 0)) {
            return others.text(other, 1)
        }
        return nil
    }

    /// Becomes one of several daemons, and removes the rows of those that have ended long ago.
    private func acquireShare(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        try connection.query(
            "DELETE FROM \(table) WHERE number > 1 AND expires_at < now() - interval '1 day'", Parameters(), [], wait
        ).check("remove old rows of the lease")
        try connection.query(
            """
            INSERT INTO \(table) (number, fence, sequence_ceiling) VALUES (\(Upkeep.row), 0, 0) ON CONFLICT DO NOTHING
            """, Parameters(), [], wait
        ).check("make a row of the lease")
        guard try advance(connection, wait) else { throw StorageFailure(.corrupt, "\(table) has no row") }
    }

    /// Makes the row of one of several daemons, while none of them declares anything: what one does is found when
    /// a collection is opened, or that one raises the number of this row.
    ///
    /// - Throws: `unavailable` while another daemon has the schema for itself.
    private func makeShare(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> QueryResult {
        var parameters = Parameters()
        parameters.add(holder)
        parameters.add(HolderIdentity.place)
        let made = try confirmed(
            """
            INSERT INTO \(table) (number, holder, place, fence, expires_at, sequence_ceiling)
            SELECT \(row), $1, $2, \(Int64.random(in: 1...1 << 40)), now() + \(Self.duration), sequence_ceiling
            FROM \(table), (SELECT \(Catalog.sharingCreation)) AS lock WHERE number = 1
            RETURNING fence, sequence_ceiling
            """, parameters, [.text, .text], connection, wait, "make a row of the lease")
        do throws(StorageFailure) {
            try removeOwner(connection, wait)
        } catch {
            try? release(connection, wait)
            throw error
        }
        return made
    }

    /// Takes the schema from a daemon that has had it for itself and is gone: what that may still want to write is
    /// refused.
    ///
    /// - Throws: `unavailable` while it is there.
    private func removeOwner(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        let owner = try connection.query(
            "SELECT holder, coalesce(place, '') FROM \(table) WHERE number = 1 AND holder IS NOT NULL",
            Parameters(), [], wait
        ).check("read the lease")
        guard owner.rowCount > 0 else { return }
        let isOver = HolderIdentity.isDead(owner.text(0, 0)) ? "true" : "expires_at < now()"
        var parameters = Parameters()
        parameters.add(owner.text(0, 0))
        let removed = try confirmed(
            """
            UPDATE \(table) SET holder = NULL, expires_at = NULL, fence = fence + 1
            WHERE number = 1 AND holder = $1 AND \(isOver) RETURNING number
            """, parameters, [.text], connection, wait, "end the lease of another daemon")
        guard removed.rowCount == 1 else {
            throw StorageFailure(
                .unavailable, "the schema is in use by \(owner.text(0, 1)), which has it for itself (without shared)")
        }
    }

    /// Renews the lease.
    ///
    /// - Returns: false if another daemon has acquired it.
    func renew(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        try update("expires_at = now() + \(Self.duration)", connection, wait).rowCount == 1
    }

    /// Waits for transactions of lost connections to end, and has those fail that have not yet begun.
    ///
    /// - Returns: false if another daemon has acquired the lease.
    func advance(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        var result = try update("fence = fence + 1, expires_at = now() + \(Self.duration)", connection, wait)
        if isShared, result.rowCount == 0 { result = try makeShare(connection, wait) }
        guard result.rowCount == 1 else { return false }
        take(result)
        return true
    }

    private func take(_ result: QueryResult) {
        number.store(result.integer(0, 0), ordering: .releasing)
        sequenceCeiling.store(UInt64(clamping: result.integer(0, 1)), ordering: .releasing)
    }

    /// Notes durably that sequence numbers up to `ceiling` may be used.
    ///
    /// - Returns: false if another daemon has acquired the lease.
    func reserve(_ ceiling: UInt64, _ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        var parameters = Parameters()
        parameters.add(Int64(clamping: ceiling))
        if !isShared { parameters.add(holder) }
        let result = try confirmed(
            """
            UPDATE \(table) SET sequence_ceiling =
                CASE WHEN sequence_ceiling = \(Self.numbersOfTransactions) THEN sequence_ceiling
                ELSE greatest(sequence_ceiling, $1) END
            WHERE number = 1\(isShared ? "" : " AND holder = $2") RETURNING 1
            """, parameters, isShared ? [.int8] : [.int8, .text], connection, wait, "reserve sequence numbers")
        guard result.rowCount == 1 else { return false }
        sequenceCeiling.store(ceiling, ordering: .releasing)
        return true
    }

    func release(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        if isShared {
            upkeep.release(in: table, holder, connection, wait)
            try connection.query("DELETE FROM \(table) WHERE number = \(row)", Parameters(), [], wait)
                .check("release the lease")
        } else {
            _ = try update("holder = NULL, expires_at = NULL", connection, wait)
        }
    }

    // MARK: Upkeep

    /// Whether this daemon does it; others may where several share the schema.
    func takeUpkeep(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        guard isShared else { return true }
        return try upkeep.take(in: table, holder, connection, wait)
    }

    // MARK: Statements

    private func update(
        _ assignment: String, _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> QueryResult {
        var parameters = Parameters()
        parameters.add(holder)
        let ceiling = isShared ? "(SELECT sequence_ceiling FROM \(table) WHERE number = 1)" : "sequence_ceiling"
        return try confirmed(
            """
            UPDATE \(table) SET \(assignment) WHERE number = \(row) AND holder = $1 RETURNING fence, \(ceiling)
            """, parameters, [.text], connection, wait, "renew the lease")
    }

    /// Runs a statement, which is a transaction of its own.
    ///
    /// - Throws: `unavailable` as well where the server has warned of its commit.
    private func confirmed(
        _ sql: String, _ parameters: Parameters, _ types: [ServerType], _ connection: Connection, _ wait: Wait,
        _ action: String
    ) throws(StorageFailure) -> QueryResult {
        connection.warning = nil
        try connection.limitStatements(wait)
        let result = try connection.query(sql, parameters, types, wait).check(action)
        if let warning = connection.warning { throw .unconfirmed(warning) }
        return result
    }
}

extension StorageFailure {
    /// The server has warned of a commit: that it has not waited for the standbys, say.
    static func unconfirmed(_ warning: ServerError) -> StorageFailure {
        StorageFailure(.unavailable, "the server has committed a transaction with a warning: \(warning.description)")
    }
}
