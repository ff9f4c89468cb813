/// The statements that a collection is read and written with.
///
/// Parameters 1 to 7 of those that write are id, revision, item, expiry, sequence number, the clock, and the revision
/// that must be there or NULL; the keys follow.
enum CollectionStatement {
    /// By id: revision, item if it is wanted, expiry, sequence number.
    case read(withItem: Bool)
    /// By bounds, in the order of keys a position (key and id) and the far bound: what `read` gives, id and rowid.
    case scan(Order, isReversed: Bool, withItems: Bool)
    /// All records, expired ones included.
    case countAll
    /// Bounds; limited: parameter 3 is the limit. Expired ones included.
    case count(Order, isLimited: Bool)
    /// Bounds; parameter 3 is the clock.
    case countExpired(Order)
    case insert, update, updateWithKeys, delete, setKeys
    /// Of an index: notes how far its keys have been filled in; parameter 1 is the clock.
    case advanceFilling
    /// Remembers a removal: id, sequence number, clock.
    case remember
    /// Clock and limit: rowid and id of the records that have expired, the first ones first.
    case expired
    /// By rowid.
    case removeRow
    /// The lowest expiry.
    case nextExpiry

    /// What a range of records is ordered by.
    enum Order: Int, CaseIterable {
        case id, key, unkeyed
        /// What was removed among the records; it has nothing but an id and a sequence number.
        case sequence
        /// The records without a sequence number, by id.
        case unsequenced
        /// The table's own, which saves looking up each row that an index names.
        case rowID
    }

    /// How many statements there are.
    static let count = 13 + 7 * Order.allCases.count

    /// Tells the statement from all others; below ``count``.
    var index: Int {
        switch self {
        case .read(let withItem): withItem ? 0 : 1
        case .countAll: 2
        case .insert: 3
        case .update: 4
        case .updateWithKeys: 5
        case .delete: 6
        case .setKeys: 7
        case .advanceFilling: 8
        case .remember: 9
        case .expired: 10
        case .removeRow: 11
        case .nextExpiry: 12
        case .scan(let order, let isReversed, let withItems):
            13 + 7 * order.rawValue + (isReversed ? 1 : 0) + (withItems ? 2 : 0)
        case .count(let order, let isLimited): 17 + 7 * order.rawValue + (isLimited ? 1 : 0)
        case .countExpired(let order): 19 + 7 * order.rawValue
        }
    }

    func sql(_ scope: StatementScope) -> String {
        switch self {
        case .read, .insert, .update, .updateWithKeys, .delete, .setKeys: recordSQL(scope)
        case .scan, .count, .countAll, .countExpired: rangeSQL(scope)
        case .remember, .expired, .removeRow, .nextExpiry: expirySQL(scope)
        case .advanceFilling: Self.advanceFillingSQL(scope.indexes[0], scope.table, now: "?1")
        }
    }
}

// MARK: One record

extension CollectionStatement {
    /// Not expired, and with the expected revision.
    private static let isPermitted = "\(isThere(by: "?6")) AND (?7 IS NULL OR revision = ?7)"

    /// Whether a record has not expired by a clock. Rows of others may have 0 or what is no integer, which is never.
    static func isThere(by clock: String) -> String {
        "(expires_at IS NULL OR expires_at = 0 OR expires_at > \(clock) OR typeof(expires_at) <> 'integer')"
    }

    private static func hasExpired(by clock: String) -> String {
        "expires_at <> 0 AND expires_at <= \(clock) AND typeof(expires_at) = 'integer'"
    }

    private func recordSQL(_ scope: StatementScope) -> String {
        let table = scope.table
        let keys = scope.indexes.enumerated().map { (column: keyColumn($0.element), parameter: "?\(8 + $0.offset)") }
        let assignments = keys.map { "\($0.column) = \($0.parameter)" }
        let values = "revision = ?2, item = ?3, expires_at = ?4, sequence = ?5"
        switch self {
        case .read(let withItem):
            return "SELECT revision, \(withItem ? "item" : "NULL"), expires_at, sequence FROM \(table) WHERE id = ?1"
        case .insert:
            let columns = ["id, revision, item, expires_at, sequence"] + keys.map(\.column)
            let parameters = ["?1, ?2, ?3, ?4, ?5"] + keys.map(\.parameter)
            // A record that has expired is not there.
            return """
                INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(parameters.joined(separator: ", ")))
                ON CONFLICT (id) DO UPDATE SET \(([values] + assignments).joined(separator: ", "))
                WHERE \(Self.hasExpired(by: "?6"))
                """
        case .update:
            // SQLite rewrites the entry of an index whenever its column is assigned to, changed or not.
            let sameKeys = keys.map { " AND \($0.column) IS \($0.parameter)" }.joined()
            return "UPDATE \(table) SET \(values) WHERE id = ?1 AND \(Self.isPermitted)\(sameKeys)"
        case .updateWithKeys:
            let assignments = ([values] + assignments).joined(separator: ", ")
            return "UPDATE \(table) SET \(assignments) WHERE id = ?1 AND \(Self.isPermitted)"
        case .setKeys:
            return "UPDATE \(table) SET \(assignments.joined(separator: ", ")) WHERE id = ?1 AND \(Self.isPermitted)"
        default:
            return "DELETE FROM \(table) WHERE id = ?1 AND \(Self.isPermitted)"
        }
    }
}

// MARK: Expiry and removals

extension CollectionStatement {
    private func expirySQL(_ scope: StatementScope) -> String {
        let expiring = """
            FROM \(scope.table) INDEXED BY \(expiryIndex(scope.collection))
            WHERE expires_at IS NOT NULL AND expires_at <> 0 AND typeof(expires_at) = 'integer'
            """
        switch self {
        case .remember:
            return "REPLACE INTO \(removalTable(scope.collection)) (id, sequence, removed_at) VALUES (?1, ?2, ?3)"
        case .expired: return "SELECT rowid, id \(expiring) AND expires_at <= ?1 ORDER BY expires_at, id LIMIT ?2"
        case .removeRow: return "DELETE FROM \(scope.table) WHERE rowid = ?1"
        default: return "SELECT expires_at \(expiring) ORDER BY expires_at, id LIMIT 1"
        }
    }
}

// MARK: Ranges of records

extension CollectionStatement {
    private func rangeSQL(_ scope: StatementScope) -> String {
        let table = scope.table
        switch self {
        case .scan(let order, let isReversed, let withItems):
            let item = withItems ? "item" : "NULL"
            return Self.scanSQL(
                scope, order, isReversed, "SELECT revision, \(item), expires_at, sequence, id, rowid FROM")
        case .count(.unkeyed, let isLimited):
            let rows = Self.unkeyedSQL(scope, "SELECT id FROM")
            return "SELECT count(*) FROM (\(rows)\(isLimited ? " LIMIT ?3" : ""))"
        case .count(.unsequenced, let isLimited):
            let rows = Self.scanSQL(scope, .unsequenced, false, "SELECT id FROM")
            return "SELECT count(*) FROM (\(rows)\(isLimited ? " LIMIT ?3" : ""))"
        case .count(let order, isLimited: false):
            return "SELECT count(*) FROM \(table) WHERE \(Self.range(order, scope))"
        case .count(let order, isLimited: true):
            return "SELECT count(*) FROM (SELECT 1 FROM \(table) WHERE \(Self.range(order, scope)) LIMIT ?3)"
        case .countExpired(let order):
            return """
                SELECT count(*) FROM \(table) INDEXED BY \(expiryIndex(scope.collection))
                WHERE \(Self.hasExpired(by: "?3")) AND \(Self.range(order, scope))
                """
        default:
            return "SELECT count(*) FROM \(table)"
        }
    }

    private static func scanSQL(
        _ scope: StatementScope, _ order: Order, _ isReversed: Bool, _ selection: String
    ) -> String {
        let direction = isReversed ? " DESC" : ""
        let table = scope.table
        switch order {
        case .key:
            let key = scope.key
            let bounds = isReversed ? "< (?1, ?2) AND \(key) >= ?3" : "> (?1, ?2) AND \(key) < ?3"
            return """
                \(selection) \(table) INDEXED BY \(scope.index) WHERE (\(key), id) \(bounds)
                ORDER BY \(key)\(direction), id\(direction)
                """
        case .unkeyed: return "\(unkeyedSQL(scope, selection)) ORDER BY id\(direction)"
        case .id: return "\(selection) \(table) WHERE \(range(order, scope)) ORDER BY id\(direction)"
        case .sequence:
            // Both are in order, and SQLite merges them.
            return """
                \(selection) \(table) INDEXED BY \(sequenceIndex(scope.collection)) WHERE \(range(order, scope))
                UNION ALL
                SELECT NULL, NULL, NULL, sequence, id, NULL FROM \(removalTable(scope.collection))
                WHERE \(range(order, scope)) ORDER BY sequence\(direction)
                """
        case .unsequenced:
            return """
                \(selection) \(table) INDEXED BY \(unsequencedIndex(scope.collection)) WHERE \(range(order, scope))
                ORDER BY id\(direction)
                """
        case .rowID: return "\(selection) \(table) NOT INDEXED WHERE \(range(order, scope)) ORDER BY rowid\(direction)"
        }
    }

    /// The records that are known to have no key, and those whose keys nobody has made yet. None of these has an id
    /// below the one that `crudd_indexes` names, so that they are found quickly, also when there are none.
    private static func unkeyedSQL(_ scope: StatementScope, _ selection: String) -> String {
        """
        \(selection) \(scope.table) INDEXED BY \(scope.index) WHERE \(scope.key) = x'' AND id >= ?1 AND id < ?2
        UNION ALL
        \(selection) \(scope.table) WHERE \(scope.key) IS NULL AND id < ?2
        AND id >= max(?1, (SELECT filled_below FROM crudd_indexes WHERE number = \(scope.indexes[0])))
        """
    }

    private static func range(_ order: Order, _ scope: StatementScope) -> String {
        switch order {
        case .id: "id >= ?1 AND id < ?2"
        case .key: "\(scope.key) >= ?1 AND \(scope.key) < ?2"
        case .unkeyed: "(\(scope.key) IS NULL OR \(scope.key) = x'') AND id >= ?1 AND id < ?2"
        case .sequence: "sequence BETWEEN ?1 AND ?2"
        case .unsequenced: "sequence IS NULL AND id >= ?1 AND id < ?2"
        case .rowID: "rowid > ?1"
        }
    }
}

// MARK: Filling an index

extension CollectionStatement {
    /// The statement that notes how far the host has come with an index.
    ///
    /// - Parameters:
    ///   - index: its number.
    ///   - table: the name of its table as a quoted identifier.
    ///   - now: the clock by which records expire, in SQL.
    static func advanceFillingSQL(_ index: Int64, _ table: String, now: String) -> String {
        """
        UPDATE crudd_indexes SET filled_below = \(firstUnfilledSQL(index, table, now: now))
        WHERE number = \(index) AND typeof(filled_below) = 'text'
        """
    }

    /// The least id, from `filled_below` on, of a record whose key nobody has made; an empty blob if there is none.
    static func firstUnfilledSQL(_ index: Int64, _ table: String, now: String) -> String {
        """
        coalesce((SELECT id FROM \(table)
        WHERE id >= filled_below AND \(keyColumn(index)) IS NULL AND \(isThere(by: now))
        ORDER BY id LIMIT 1), x'')
        """
    }
}

// MARK: Names

/// The column that holds the keys of an index.
func keyColumn(_ index: Int64) -> String { "crudd_key_\(index)" }

/// The index by expiry, which holds only records that expire.
func expiryIndex(_ collection: Int64) -> String { "crudd_expiry_\(collection)" }

/// The index by sequence number.
func sequenceIndex(_ collection: Int64) -> String { "crudd_sequence_\(collection)" }

/// The index by id of the records without a sequence number.
func unsequencedIndex(_ collection: Int64) -> String { "crudd_unsequenced_\(collection)" }

/// What was removed from a collection.
func removalTable(_ collection: Int64) -> String { "crudd_removed_\(collection)" }

extension StatementScope {
    /// Of a scope of one index: the column of its keys.
    fileprivate var key: String { keyColumn(indexes[0]) }
    /// Of a scope of one index: its name.
    fileprivate var index: String { "crudd_index_\(indexes[0])" }
}
