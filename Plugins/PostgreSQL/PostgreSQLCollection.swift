import CRUDPluginKit
import Synchronization

/// An open collection: the table that holds it.
final class PostgreSQLCollection: Sendable {
    /// Of its row in `crudd_collections`.
    let number: Int64
    let tableName: String
    let format: Format
    /// What the statements are made for that know nothing of indexes.
    let scope: StatementScope
    private let currentLayout: Mutex<Layout>
    /// Whether a record may be there that expires.
    let mayExpire = Atomic(false)
    /// Bytes of a record, on average; 0: not known yet. It decides how many a scan asks for at once.
    let averageBytes = Atomic(0)

    /// The ids of rows that have the sequence number of another one, as far as scans have met them: somebody has copied
    /// rows with their numbers. A scan shows one row for each number.
    private let copies = Mutex<Set<[UInt8]>>([])

    private static let maximumCopies = 10_000
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

    func noteCopy(_ id: UnsafeRawBufferPointer) {
        copies.withLock { copies in
            guard copies.count < Self.maximumCopies else { return }
            copies.insert(Array(id))
        }
    }

    func takeCopies() -> [[UInt8]] {
        copies.withLock { copies in
            defer { copies.removeAll() }
            return Array(copies)
        }
    }

    /// The indexes of a collection at one time.
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
        var columnType: ServerType {
            switch self {
            case .json: .json
            case .xml: .text
            case .plist: .bytea
            }
        }
    }
}

/// What a set of statements is made for: a table, and the indexes that they know of.
final class StatementScope: Sendable {
    /// Tells it from all others while the backend is open.
    let number: Int
    /// The table's name as a quoted identifier, with that of its schema.
    let table: String
    /// That of what was removed, likewise.
    let removals: String
    let itemType: ServerType
    /// The numbers of the indexes, in their order.
    let indexes: [Int64]

    init(number: Int, table: String, removals: String, itemType: ServerType, indexes: [Int64]) {
        self.number = number
        self.table = table
        self.removals = removals
        self.itemType = itemType
        self.indexes = indexes
    }

    /// The columns of the keys.
    var keyColumns: [String] { indexes.map(keyColumn) }
}

/// The column that holds the keys of an index.
func keyColumn(_ index: Int64) -> String { "crudd_key_\(index)" }
