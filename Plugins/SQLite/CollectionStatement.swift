/// The statements that a collection is read and written with.
enum CollectionStatement: Int, CaseIterable {
    case read, readRevision, scan, scanRevisions, count, countRange
    case insert, update, updateRevision, delete, deleteRevision

    /// - Parameter table: a quoted identifier.
    func sql(_ table: String) -> String {
        switch self {
        case .read: "SELECT revision, item FROM \(table) WHERE id = ?1"
        case .readRevision: "SELECT revision FROM \(table) WHERE id = ?1"
        case .scan: "SELECT revision, item, id FROM \(table) WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3"
        case .scanRevisions: "SELECT revision, NULL, id FROM \(table) WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3"
        case .count: "SELECT count(*) FROM \(table)"
        case .countRange: "SELECT count(*) FROM \(table) WHERE id >= ?1 AND id < ?2"
        case .insert: "INSERT INTO \(table) (id, revision, item) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING"
        case .update: "UPDATE \(table) SET revision = ?2, item = ?3 WHERE id = ?1"
        case .updateRevision: "UPDATE \(table) SET revision = ?2, item = ?3 WHERE id = ?1 AND revision = ?4"
        case .delete: "DELETE FROM \(table) WHERE id = ?1"
        case .deleteRevision: "DELETE FROM \(table) WHERE id = ?1 AND revision = ?4"
        }
    }
}
