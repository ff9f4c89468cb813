/// The text of a statement and the types of its parameters.
struct StatementDefinition {
    let sql: String
    let parameters: [ServerType]
}

/// The statements that a collection is read and written with.
///
/// Records come as id, revision, expiry, sequence number, the item or NULL, and the key in scans by key. They are given
/// as id, revision, item, expiry, sequence number and the keys.
enum CollectionStatement: Hashable {
    /// By id, or by an array of ids.
    case read(isSingle: Bool, withItems: Bool)
    /// By id, and locks the record until the transaction ends.
    case lock(withItem: Bool)
    case scan(Scan)
    /// Bounds; expired records included.
    case count(Scan)
    /// Bounds, then the clock.
    case countExpired(Scan)
    /// So many records, and then the clock. Returns the ids of those that were stored, and whether they are new.
    case put(rows: Int, ifAbsent: Bool)
    /// One record, the clock, and the expected revision if there is one. With a revision, and where that is to be
    /// told, it returns how many were changed and the revision that was there when it began.
    case update(ifRevision: Bool, tellsRevision: Bool)
    /// Id, clock and expected revision, likewise. One that is remembered has a sequence number behind these, and
    /// returns how many were removed even without a revision.
    case remove(ifRevision: Bool, tellsRevision: Bool, isRemembered: Bool)
    /// Clock, limit and, if they are remembered, the first sequence number: removes what has expired and returns the
    /// ids.
    case expire(isRemembered: Bool)
    /// The lowest expiry.
    case nextExpiry
    /// Id, clock, expected revision, keys; likewise.
    case setKeys
    /// Id: revision and expiry of the record. With locks it stays as it is until the transaction ends, and whether it
    /// was locked follows; one that was not was there when the statement began, and was removed while it waited.
    case examine(locks: Bool)
    /// See ``IDLocks``: an array of numbers, an x before each exclusive lock, an s before each shared one.
    case lockIDs
    /// Removes the records among an array of ids that have expired by a clock.
    case removeExpired
    /// A number of `crudd_history`, where the server numbers changes: identity and what was forgotten, up to where the
    /// changes can be read, the least number that a later one has, and the highest of all.
    case history
    /// Id: revision, whether the record was new when it was stored, and expiry.
    case verify
    /// The bounds of a transaction.
    case begin, commit
    /// Row and number: locks that row of the lease, on condition that its number is the one given.
    case fence

    /// A range of records in order.
    struct Scan: Hashable {
        enum Order: Hashable {
            case id, key, unkeyed
            /// What was removed among the records, without a revision.
            case sequence
            /// The records without a sequence number, by id.
            case unsequenced
        }

        let order: Order
        var isReversed = false
        var withItems = false
        /// By id: the least id is not in the range.
        var excludesLower = false
        /// By id: there is an upper bound.
        var hasUpper = false
    }

    func definition(_ scope: StatementScope) -> StatementDefinition {
        switch self {
        case .read(let isSingle, let withItems):
            StatementDefinition(
                sql: """
                    SELECT id, revision, expires_at, sequence, \(withItems ? "item" : "NULL") FROM \(scope.table)
                    WHERE id = \(isSingle ? "$1" : "ANY ($1)")
                    """,
                parameters: [isSingle ? .text : .textArray])
        case .lock(let withItem):
            StatementDefinition(
                sql: """
                    SELECT id, revision, expires_at, sequence, \(withItem ? "item" : "NULL") FROM \(scope.table)
                    WHERE id = $1 FOR UPDATE
                    """,
                parameters: [.text])
        case .scan(let scan): scan.definition(scope)
        case .count(let scan): scan.count(scope, expiredOnly: false)
        case .countExpired(let scan): scan.count(scope, expiredOnly: true)
        case .put(let rows, let ifAbsent): Self.put(scope, rows: rows, ifAbsent: ifAbsent)
        case .update(let ifRevision, let tellsRevision):
            Self.update(scope, ifRevision: ifRevision, tellsRevision: tellsRevision)
        case .remove(let ifRevision, let tellsRevision, let isRemembered):
            isRemembered
                ? Self.rememberedRemoval(scope, ifRevision: ifRevision)
                : Self.removal(scope, ifRevision: ifRevision, tellsRevision: tellsRevision)
        case .expire(let isRemembered): Self.expire(scope, isRemembered: isRemembered)
        case .nextExpiry:
            StatementDefinition(
                sql: """
                    SELECT expires_at FROM \(scope.table) WHERE expires_at IS NOT NULL AND expires_at <> 0
                    ORDER BY expires_at, id LIMIT 1
                    """, parameters: [])
        case .setKeys:
            Self.changing(
                """
                UPDATE \(scope.table) AS r
                SET \(scope.keyColumns.enumerated().map { "\($1) = $\($0 + 4)" }.joined(separator: ", "))
                WHERE r.id = $1 AND \(Self.isThere("r.", by: 2))
                """, scope, expected: 3, [.text, .int8], tellsRevision: true, after: scope.indexes.map { _ in .bytea })
        case .examine(let locks): Self.examine(scope, locks: locks)
        case .lockIDs:
            StatementDefinition(
                sql: """
                    SELECT CASE WHEN id LIKE 'x%' THEN pg_advisory_xact_lock(substr(id, 2)::bigint)::text
                    ELSE pg_advisory_xact_lock_shared(substr(id, 2)::bigint)::text END FROM unnest($1) AS id
                    """, parameters: [.textArray])
        case .removeExpired:
            StatementDefinition(
                sql: "DELETE FROM \(scope.table) WHERE id = ANY ($1) AND \(Self.hasExpired(by: 2))",
                parameters: [.textArray, .int8])
        case .history: Self.history(scope)
        case .verify:
            StatementDefinition(
                sql: "SELECT revision, xmax = 0, expires_at FROM \(scope.table) WHERE id = $1",
                parameters: [.text])
        case .begin: StatementDefinition(sql: "BEGIN", parameters: [])
        case .commit: StatementDefinition(sql: "COMMIT", parameters: [])
        case .fence: StatementDefinition(sql: Self.fenceSQL(scope.table), parameters: [.int8, .int8])
        }
    }
}

// MARK: Conditions

extension CollectionStatement {
    /// A statement whose parameters are the number of a row of `crudd_lease` and what its `fence` has to be. It locks
    /// the row, and divides by zero where the fence is another one.
    static func fenceSQL(_ table: String) -> String {
        """
        WITH held AS (SELECT 1 FROM \(table) WHERE number = $1 AND fence = $2 FOR SHARE)
        SELECT 1 / count(*) FROM held
        """
    }

    /// Whether a record has not expired by the clock in a parameter. Rows of others may have 0, which is never.
    ///
    /// - Parameter row: what names the row, such as "r.".
    fileprivate static func isThere(_ row: String = "", by clock: Int) -> String {
        "(\(row)expires_at IS NULL OR \(row)expires_at = 0 OR \(row)expires_at > $\(clock))"
    }

    fileprivate static func hasExpired(_ row: String = "", by clock: Int) -> String {
        "\(row)expires_at <> 0 AND \(row)expires_at <= $\(clock)"
    }

    /// Whether a record has the revision in a parameter, as the host knows it.
    fileprivate static func isRevision(_ row: String = "", in expected: Int) -> String {
        """
        (\(row)revision = $\(expected) OR $\(expected) = '\(StoredRecord.invalidRevision)'
        AND \(row)revision COLLATE "C" !~ '^[!-~]{1,64}$')
        """
    }
}

// MARK: Writing

extension CollectionStatement {
    private static func columns(_ scope: StatementScope) -> [String] {
        ["id", "revision", "item", "expires_at", "sequence"] + scope.keyColumns
    }

    private static func types(_ scope: StatementScope) -> [ServerType] {
        [.text, .text, scope.itemType, .int8, .int8] + scope.indexes.map { _ in .bytea }
    }

    /// Rows as VALUES, which sharded servers send to their shards directly.
    private static func put(_ scope: StatementScope, rows: Int, ifAbsent: Bool) -> StatementDefinition {
        let columns = columns(scope)
        let types = types(scope)
        let values = (0..<rows).map { row in
            let row = columns.enumerated().map { scope.value($1, row * columns.count + $0 + 1) }
            return "(\(row.joined(separator: ", ")))"
        }
        let assignments = columns.dropFirst().map { "\($0) = excluded.\($0)" }
        let clock = rows * columns.count + 1
        return StatementDefinition(
            sql: """
                INSERT INTO \(scope.table) AS r (\(columns.joined(separator: ", ")))
                VALUES \(values.joined(separator: ", "))
                ON CONFLICT (id) DO UPDATE SET \(assignments.joined(separator: ", "))
                \(ifAbsent ? "WHERE \(hasExpired("r.", by: clock))" : "") RETURNING r.id, xmax = 0
                """,
            parameters: (0..<rows).flatMap { _ in types } + (ifAbsent ? [.int8] : []))
    }

    private static func update(
        _ scope: StatementScope, ifRevision: Bool, tellsRevision: Bool
    ) -> StatementDefinition {
        let columns = columns(scope)
        let assignments = columns.enumerated().dropFirst().map { "\($1) = \(scope.value($1, $0 + 1))" }
        let clock = columns.count + 1
        return changing(
            """
            UPDATE \(scope.table) AS r SET \(assignments.joined(separator: ", "))
            WHERE r.id = $1 AND \(isThere("r.", by: clock))
            """, scope, expected: ifRevision ? clock + 1 : nil, types(scope) + [.int8], tellsRevision: tellsRevision,
            clock: clock)
    }

    private static func removal(
        _ scope: StatementScope, ifRevision: Bool, tellsRevision: Bool
    ) -> StatementDefinition {
        changing(
            "DELETE FROM \(scope.table) AS r WHERE r.id = $1 AND \(isThere("r.", by: 2))", scope,
            expected: ifRevision ? 3 : nil, [.text, .int8], tellsRevision: tellsRevision)
    }

    private static func examine(_ scope: StatementScope, locks: Bool) -> StatementDefinition {
        let record = "SELECT revision, expires_at FROM \(scope.table) WHERE id = $1"
        guard locks else { return StatementDefinition(sql: record, parameters: [.text]) }
        return StatementDefinition(
            sql: """
                WITH locked AS (\(record) FOR UPDATE) SELECT revision, expires_at, true FROM locked
                UNION ALL SELECT revision, expires_at, false FROM \(scope.table)
                WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM locked)
                """, parameters: [.text])
    }

    private static func rememberedRemoval(_ scope: StatementScope, ifRevision: Bool) -> StatementDefinition {
        let isThere = "id = $1 AND \(isThere(by: 2))"
        let isPermitted = ifRevision ? "\(isThere) AND \(isRevision(in: 3))" : isThere
        return StatementDefinition(
            sql: """
                WITH changed AS (
                    DELETE FROM \(scope.table) WHERE \(isPermitted) RETURNING id
                ), remembered AS (
                    INSERT INTO \(scope.removals) (sequence, id, removed_at)
                    SELECT \(scope.value("sequence", ifRevision ? 4 : 3)), id, $2 FROM changed
                )
                SELECT (SELECT count(*) FROM changed), (SELECT revision FROM \(scope.table) WHERE \(isThere))
                """,
            parameters: [.text, .int8] + (ifRevision ? [.text] : []) + [.int8])
    }

    private static func history(_ scope: StatementScope) -> StatementDefinition {
        func last(_ condition: String) -> String {
            let numbers = [scope.table, scope.removals].map { table in
                "(SELECT r.sequence FROM \(table) AS r WHERE r.sequence \(condition) ORDER BY r.sequence DESC LIMIT 1)"
            }
            return "greatest(h.forgotten, \(numbers.joined(separator: ", ")))"
        }
        return StatementDefinition(
            sql: """
                WITH bound AS (SELECT \(TransactionNumber.bound) AS number)
                SELECT h.identity, h.forgotten, \(last("< (SELECT number FROM bound)")),
                    (SELECT number FROM bound), \(last("< \(TransactionNumber.next)"))
                FROM \(scope.histories ?? "") AS h WHERE h.collection = $1
                """,
            parameters: [.int8])
    }

    private static func expire(_ scope: StatementScope, isRemembered: Bool) -> StatementDefinition {
        let remembered = """
            , numbered AS (
                SELECT id, expires_at, \(scope.value("sequence", 3)) - 1
                    + row_number() OVER (ORDER BY expires_at, id) AS sequence FROM changed
            ), remembered AS (
                INSERT INTO \(scope.removals) (sequence, id, removed_at) SELECT sequence, id, $1 FROM numbered
            )
            """
        return StatementDefinition(
            sql: """
                WITH changed AS (
                    DELETE FROM \(scope.table) WHERE id = ANY (ARRAY(
                        SELECT id FROM \(scope.table) WHERE expires_at IS NOT NULL AND \(hasExpired(by: 1))
                        ORDER BY expires_at, id LIMIT $2
                    )) AND \(hasExpired(by: 1)) RETURNING id, expires_at
                )\(isRemembered ? remembered : "") SELECT id FROM changed ORDER BY expires_at, id
                """,
            parameters: [.int8, .int8] + (isRemembered ? [.int8] : []))
    }

    /// A statement that changes one record; with an expected revision it tells the one that was there, too.
    private static func changing(
        _ sql: String, _ scope: StatementScope, expected: Int?, _ types: [ServerType], tellsRevision: Bool,
        after: [ServerType] = [], clock: Int = 2
    ) -> StatementDefinition {
        guard expected != nil || tellsRevision else { return StatementDefinition(sql: sql, parameters: types + after) }
        let condition = expected.map { " AND \(isRevision("r.", in: $0))" } ?? ""
        return StatementDefinition(
            sql: """
                WITH changed AS (\(sql)\(condition) RETURNING r.id)
                SELECT (SELECT count(*) FROM changed), (SELECT revision FROM \(scope.table)
                WHERE id = $1 AND \(isThere(by: clock)))
                """,
            parameters: types + (expected == nil ? [] : [.text]) + after)
    }
}

// MARK: Ranges of records

extension CollectionStatement.Scan {
    private var direction: String { isReversed ? " DESC" : "" }

    /// The key of a scope of one index.
    private func key(_ scope: StatementScope) -> String { keyColumn(scope.indexes[0]) }

    func definition(_ scope: StatementScope) -> StatementDefinition {
        let (condition, types) = condition(scope)
        let order =
            switch order {
            case .id, .unkeyed, .unsequenced: "id\(direction)"
            case .key: "\(key(scope))\(direction), id\(direction)"
            case .sequence: "sequence\(direction)"
            }
        let columns = "id, revision, expires_at, sequence, \(withItems ? "item" : "NULL")"
        func select(_ columns: String, from table: String, _ more: String = "") -> String {
            "SELECT \(columns) FROM \(table) WHERE \(condition)\(more) ORDER BY \(order) LIMIT $\(types.count + 1)"
        }
        let records = select(columns + (self.order == .key ? ", \(key(scope))" : ""), from: scope.table)
        if self.order != .sequence { return StatementDefinition(sql: records, parameters: types + [.int8]) }
        // Both parts are in order, by their indexes, and the server merges them.
        let removals = select(
            "id, NULL, NULL, sequence, NULL", from: "\(scope.removals) AS removed", scope.removalCondition)
        return StatementDefinition(
            sql: "(\(records)) UNION ALL (\(removals)) ORDER BY \(order) LIMIT $\(types.count + 1)",
            parameters: types + [.int8])
    }

    func count(_ scope: StatementScope, expiredOnly: Bool) -> StatementDefinition {
        let (condition, types) = condition(scope)
        if expiredOnly {
            return StatementDefinition(
                sql: """
                    SELECT count(*) FROM \(scope.table)
                    WHERE expires_at IS NOT NULL AND \(CollectionStatement.hasExpired(by: types.count + 1))
                    AND \(condition)
                    """,
                parameters: types + [.int8])
        }
        return StatementDefinition(
            sql: """
                SELECT count(*) FROM
                (SELECT 1 FROM \(scope.table) WHERE \(condition) LIMIT $\(types.count + 1)) AS counted
                """,
            parameters: types + [.int8])
    }

    private func condition(_ scope: StatementScope) -> (sql: String, types: [ServerType]) {
        switch order {
        case .id, .unkeyed, .unsequenced:
            let bounds = "id \(excludesLower ? ">" : ">=") $1\(hasUpper ? " AND id < $2" : "")"
            let selection =
                switch order {
                case .unkeyed: "\(key(scope)) = '' AND "
                case .unsequenced: "sequence IS NULL AND "
                default: ""
                }
            return (selection + bounds, hasUpper ? [.text, .text] : [.text])
        case .key:
            let key = key(scope)
            let bounds = isReversed ? "< ($1, $2) AND \(key) >= $3" : "> ($1, $2) AND \(key) < $3"
            return ("(\(key), id) \(bounds)", [.bytea, .text, .bytea])
        case .sequence: return ("sequence BETWEEN $1 AND $2", [.int8, .int8])
        }
    }
}
