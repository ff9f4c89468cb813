import CRUDPluginKit
import Synchronization

/// An open collection: the table that holds it.
final class PostgreSQLCollection: Sendable {
    /// Of its row in `crudd_collections`.
    let number: Int64
    let name: [UInt8]
    let tableName: String
    let format: Format
    /// The names of its table, and of that of what was removed, as SQL spells them.
    private let table: String
    private let removals: String
    private let histories: String?
    /// What the statements are made for that know nothing of indexes.
    let scope: StatementScope
    private let definition: Mutex<Definition>
    /// Whether a record may be there that expires.
    let mayExpire = Atomic(false)
    /// Bytes of a record, on average; 0: not known yet. It decides how many a scan asks for at once.
    let averageBytes = Atomic(0)

    /// The number from which on changes of its feed were waited for in vain.
    let delayedNext = Atomic<UInt64>(.max)

    /// The ids of rows that have the sequence number of another one, as far as scans have met them: SQL has copied
    /// rows with their numbers. A scan shows one row for each number.
    private let copies = Mutex<Set<[UInt8]>>([])

    private static let maximumCopies = 10_000
    private let hasInvalidID = Atomic(false)

    /// What has been declared of the collection, and what its table is so far.
    private struct Definition {
        var indexes: [Int64] = []
        var keepsSequences = false
        var table = TableState()
        /// Why the table could not be changed.
        var refusal: String?
        var layout: Layout
    }

    /// Why something of the table cannot be used yet.
    var refusal: String? { definition.withLock { $0.refusal } }

    /// Notes why the table could not be changed; nil: it has been.
    func note(refusal: String?) { definition.withLock { $0.refusal = refusal } }

    /// What can be used now.
    var layout: Layout { definition.withLock { $0.layout } }

    /// Whether the table is what has been declared.
    var isComplete: Bool {
        definition.withLock { definition in
            let indexes =
                definition.indexes.map(TableIndex.keys)
                + (definition.keepsSequences ? TableIndex.sequences(of: number) : [])
            return indexes.allSatisfy { definition.table.isReady($0.name) }
                && definition.table.columns == Set(definition.indexes)
                && hasTableOfRemovals(definition)
        }
    }

    /// Whether there is a table of removals where there is to be one. One that there need not be is left where another
    /// daemon may be about to use it.
    private func hasTableOfRemovals(_ definition: Definition) -> Bool {
        definition.table.hasRemovals == definition.keepsSequences || histories != nil && definition.table.hasRemovals
    }

    /// Whether an index of it is made in no time.
    var isSmall: Bool { definition.withLock { $0.table.isSmall } }

    /// - Parameters:
    ///   - table: its name as SQL spells it, with that of the schema.
    ///   - removals: that of the table of what was removed, likewise.
    ///   - histories: where the server numbers changes: see ``StatementScope/histories``.
    init(
        number: Int64, name: [UInt8], tableName: String, table: String, removals: String, format: Format,
        histories: String?
    ) {
        self.number = number
        self.name = name
        self.tableName = tableName
        self.format = format
        (self.table, self.removals, self.histories) = (table, removals, histories)
        scope = StatementScope(
            table: table, removals: removals, itemType: format.columnType, indexes: [], histories: histories)
        definition = Mutex(
            Definition(layout: Layout(scope: scope, indexes: [], keepsSequences: false, hasSequenceIndexes: false)))
    }

    /// Notes what has been declared, and what the table is.
    func note(indexes: [Int64], keepsSequences: Bool, _ table: TableState) {
        definition.withLock { definition in
            (definition.indexes, definition.keepsSequences, definition.table) = (indexes, keepsSequences, table)
            adapt(&definition)
        }
    }

    /// Notes that removals are to be remembered, as another daemon has declared with the table for them.
    func noteHistory() {
        definition.withLock { definition in
            (definition.keepsSequences, definition.table.hasRemovals) = (true, true)
            adapt(&definition)
        }
    }

    /// Notes what the table is.
    func note(_ table: TableState) {
        definition.withLock { definition in
            definition.table = table
            adapt(&definition)
        }
    }

    private func adapt(_ definition: inout Definition) {
        let (old, table) = (definition.layout, definition.table)
        let columns = definition.indexes.enumerated().filter { table.columns.contains($1) }
        let hasSequenceIndexes = TableIndex.sequences(of: number).allSatisfy { table.isReady($0.name) }
        let indexes = definition.indexes.map { index in
            let isReady = table.columns.contains(index) && table.isReady(TableIndex.keys(index).name)
            guard isReady else { return Layout.Index(number: index, scope: nil) }
            let known = old.indexes.first { $0.number == index }?.scope
            return Layout.Index(number: index, scope: known ?? makeScope([index], positions: [0]))
        }
        let isScopeKnown = old.scope.indexes == columns.map(\.element) && old.scope.positions == columns.map(\.offset)
        definition.layout = Layout(
            scope: isScopeKnown ? old.scope : makeScope(columns.map(\.element), positions: columns.map(\.offset)),
            indexes: indexes, keepsSequences: definition.keepsSequences, hasSequenceIndexes: hasSequenceIndexes)
    }

    private func makeScope(_ indexes: [Int64], positions: [Int]) -> StatementScope {
        StatementScope(
            table: table, removals: removals, itemType: format.columnType, indexes: indexes, positions: positions,
            histories: histories)
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
        struct Index {
            let number: Int64
            /// What the statements are made for that look into it; nil while it is being made.
            let scope: StatementScope?
        }

        /// What the statements are made for that store keys.
        let scope: StatementScope
        /// By their positions.
        let indexes: [Index]
        /// Whether removals are remembered.
        let keepsSequences: Bool
        /// Whether the table has its indexes by sequence number.
        let hasSequenceIndexes: Bool

        init(scope: StatementScope, indexes: [Index], keepsSequences: Bool, hasSequenceIndexes: Bool) {
            self.scope = scope
            self.indexes = indexes
            self.keepsSequences = keepsSequences
            self.hasSequenceIndexes = hasSequenceIndexes
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
    private static let count = Atomic(0)

    /// Tells it from all others.
    let number = count.add(1, ordering: .relaxed).newValue
    /// The table's name as a quoted identifier, with that of its schema.
    let table: String
    /// That of what was removed, likewise.
    let removals: String
    let itemType: ServerType
    /// The numbers of the indexes whose columns there are, in their order.
    let indexes: [Int64]
    /// Their positions among all of the collection.
    let positions: [Int]
    /// The name of `crudd_history`, as SQL spells it, where the server numbers changes (``TransactionNumber``); nil:
    /// the host does.
    let histories: String?

    init(
        table: String, removals: String, itemType: ServerType, indexes: [Int64], positions: [Int] = [],
        histories: String? = nil
    ) {
        self.table = table
        self.removals = removals
        self.itemType = itemType
        self.indexes = indexes
        self.positions = positions
        self.histories = histories
    }

    /// The columns of the keys.
    var keyColumns: [String] { indexes.map(keyColumn) }
}

/// The column that holds the keys of an index.
func keyColumn(_ index: Int64) -> String { "crudd_key_\(index)" }
