/// What there is of a collection in the schema, beside the columns that every table has.
struct TableState {
    /// The numbers of the columns of keys.
    var columns: Set<Int64> = []
    /// Indexes by name: whether they can be used, or were left by something that has been interrupted.
    var indexes: [String: Bool] = [:]
    /// Whether there is a table of removals.
    var hasRemovals = false
    /// The size of the table.
    var bytes: Int64 = 0
    /// How many rows it has although it is empty here: on other servers. At most ``manyRows``.
    var rowsElsewhere: Int64 = 0

    /// An index of a table of this size is made in some milliseconds.
    private static let smallBytes: Int64 = 4 << 20
    /// So many rows may have more bytes.
    static let manyRows: Int64 = 10_000

    var isSmall: Bool { bytes <= Self.smallBytes && rowsElsewhere < Self.manyRows }

    func isReady(_ index: String) -> Bool { indexes[index] == true }
}

/// An index of a collection's table.
struct TableIndex {
    let name: String
    /// What follows the table's name in its definition.
    let definition: String

    static func keys(_ number: Int64) -> TableIndex {
        TableIndex(name: "crudd_index_\(number)", definition: "(\(keyColumn(number)), id)")
    }

    /// Of a collection that keeps sequence numbers.
    static func sequences(of collection: Int64) -> [TableIndex] {
        [
            TableIndex(name: "crudd_\(collection)_sequence", definition: "(sequence) WHERE sequence IS NOT NULL"),
            TableIndex(name: "crudd_\(collection)_unsequenced", definition: "(id) WHERE sequence IS NULL"),
        ]
    }
}
