/// The statements that a query finds records with. Those that give records give rowid, item and id.
enum QueryStatement: Hashable {
    /// All records, in no order.
    case all
    /// Those with ids of a range, in no order.
    case ids
    /// A record by its rowid: revision, item, id.
    case record
    /// The entries of an index with one key, by id.
    case group
    /// Those with keys of a range, in no order.
    case range
    /// How many there are in a range, up to a limit.
    case groupSize, rangeSize
    /// The nearest key of a rank, going up or down, bounds included or the first one not.
    case firstUp, nextUp, firstDown, nextDown

    /// - Parameters:
    ///   - table: a quoted identifier.
    ///   - index: what the statement looks into, where it does.
    func sql(_ table: String, _ index: PropertyIndex?) -> String {
        let rank = index?.rank ?? ""
        let value = index?.value ?? ""
        return switch self {
        case .all: "SELECT rowid, item, id FROM \(table)"
        case .ids: "SELECT rowid, item, id FROM \(table) WHERE id >= ?1 AND id < ?2"
        case .record: "SELECT revision, item, id FROM \(table) WHERE rowid = ?1"
        case .group:
            """
            SELECT rowid, item, id FROM \(table) WHERE \(rank) = ?1 AND \(value) IS ?2 AND id >= ?3 AND id < ?4 ORDER BY id
            """
        case .range:
            "SELECT rowid, item, id FROM \(table) WHERE \(rank) = ?1 AND \(value) >= ?2 AND \(value) <= ?3"
        case .groupSize:
            "SELECT count(*) FROM (SELECT 1 FROM \(table) WHERE \(rank) = ?1 AND \(value) IS ?2 LIMIT ?4)"
        case .rangeSize:
            """
            SELECT count(*) FROM
            (SELECT 1 FROM \(table) WHERE \(rank) = ?1 AND \(value) >= ?2 AND \(value) <= ?3 LIMIT ?4)
            """
        case .firstUp, .nextUp:
            """
            SELECT \(value) FROM \(table) WHERE \(rank) = ?1 AND \(value) \(self == .nextUp ? ">" : ">=") ?2
            AND \(value) <= ?3 ORDER BY \(value) LIMIT 1
            """
        case .firstDown, .nextDown:
            """
            SELECT \(value) FROM \(table) WHERE \(rank) = ?1 AND \(value) \(self == .nextDown ? "<" : "<=") ?3
            AND \(value) >= ?2 ORDER BY \(value) DESC LIMIT 1
            """
        }
    }

    /// Which statement of which collection and index.
    struct Key: Hashable {
        var statement: QueryStatement
        var collection: Int
        /// −1 for none.
        var index: Int
    }
}
