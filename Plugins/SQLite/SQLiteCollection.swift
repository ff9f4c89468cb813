import CRUDPluginKit
import Synchronization

/// An open collection: the table that holds it.
final class SQLiteCollection: Sendable {
    /// Of its row in `crudd_collections`.
    let number: Int64
    let tableName: String
    let format: Format
    /// What the statements are made for that know nothing of indexes.
    let scope: StatementScope
    private let currentLayout: Mutex<Layout>
    private let hasInvalidID = Atomic(false)

    /// The indexes that there are. The backend's thread sets it, readers look.
    var layout: Layout {
        get { currentLayout.withLock { $0 } }
        set { currentLayout.withLock { $0 = newValue } }
    }

    init(number: Int64, tableName: String, format: Format, scope: StatementScope) {
        self.number = number
        self.tableName = tableName
        self.format = format
        self.scope = scope
        currentLayout = Mutex(Layout(scope: scope, indexes: [], keepsSequences: false))
    }

    /// Logs once that a row is left out.
    func reportInvalidID(to host: Host) {
        if hasInvalidID.exchange(true, ordering: .relaxed) { return }
        host.log(.warning, "table \(tableName) has a row whose id no client can name; it is ignored")
    }

    /// The indexes of a collection at one time. It never changes; an object, as each mutation takes hold of it.
    final class Layout: Sendable {
        /// What the statements are made for that store keys.
        let scope: StatementScope
        /// What the statements are made for that look into an index, by its position.
        let indexes: [StatementScope]
        /// Whether the table has an index by sequence number.
        let keepsSequences: Bool

        init(scope: StatementScope, indexes: [StatementScope], keepsSequences: Bool) {
            self.scope = scope
            self.indexes = indexes
            self.keepsSequences = keepsSequences
        }
    }

    /// What the items are.
    enum Format: String {
        case json, xml, plist

        /// The type of the column that holds the items.
        var columnType: String {
            switch self {
            case .json, .xml: "TEXT"
            case .plist: "BLOB"
            }
        }
    }
}

/// What a set of statements is made for: a table, and the indexes that they know of.
final class StatementScope: Sendable {
    /// Tells it from all others while the backend is open.
    let number: Int
    /// The table's name as a quoted identifier.
    let table: String
    /// Of its row in `crudd_collections`.
    let collection: Int64
    /// The numbers of the indexes, in their order.
    let indexes: [Int64]

    init(number: Int, table: String, collection: Int64, indexes: [Int64]) {
        self.number = number
        self.table = table
        self.collection = collection
        self.indexes = indexes
    }
}

/// `name` as SQL spells an identifier of any text.
func quotedIdentifier(_ name: String) -> String {
    var quoted = "\""
    for scalar in name.unicodeScalars {
        if scalar == "\"" { quoted += "\"" }
        quoted.unicodeScalars.append(scalar)
    }
    return quoted + "\""
}
