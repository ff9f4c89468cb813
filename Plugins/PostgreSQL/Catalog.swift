import CRUDPluginKit

/// The tables `crudd_collections` and `crudd_indexes`, which say what table holds a collection, and its indexes.
///
/// A collection has one table for each format that it was ever opened with. The table has the collection's name unless
/// this plugin reserves it, it is too long for PostgreSQL or something else in the schema has it; then it is called
/// `crudd_NUMBER_NAME`, cut to what fits, which nothing else can be.
///
/// The keys of an index stand in a column `crudd_key_NUMBER`, an empty one for none, with a B-tree on that column and
/// the id. What is declared here becomes true of the table by a ``TableChange``.
struct Catalog {
    let schema: Schema
    let connection: Connection
    let wait: Wait

    private var collections: String { schema.table("crudd_collections") }
    private var indexes: String { schema.table("crudd_indexes") }

    /// A row of `crudd_collections`.
    struct Entry {
        var number: Int64
        var tableName: String
    }

    // MARK: Collections

    /// Where a collection is; nil if it is nowhere.
    func entry(_ name: String, _ format: PostgreSQLCollection.Format) throws(StorageFailure) -> Entry? {
        let result = try query(
            "SELECT number, table_name FROM \(collections) WHERE name = $1 AND format = $2", [name, format.rawValue],
            "find collection \(name)")
        guard result.rowCount == 1 else { return nil }
        let entry = Entry(number: result.integer(0, 0), tableName: result.text(0, 1))
        guard try schema.exists(entry.tableName, connection, wait) else {
            throw StorageFailure(
                .corrupt,
                """
                the table \(entry.tableName) of collection \(name) is missing; \
                to start with an empty one, delete its row of crudd_collections
                """)
        }
        return entry
    }

    /// Refuses a collection that has a table for another format, which another daemon may serve.
    func refuseOtherFormats(of name: String, than format: PostgreSQLCollection.Format) throws(StorageFailure) {
        let others = try query(
            "SELECT format FROM \(collections) WHERE name = $1 AND format <> $2", [name, format.rawValue],
            "find collection \(name)")
        guard others.rowCount > 0 else { return }
        let other = others.text(0, 0)
        throw StorageFailure(
            .unsupported,
            """
            collection \(name) has a table for format \(other), and daemons that share a schema have to agree on one: \
            give it that format, or let one daemon that has the schema for itself (without shared) move it, and drop \
            what is left (crudctl drop --moved)
            """)
    }

    /// Waits until no other daemon is making a table, and keeps others from it until the end of the transaction.
    func lockCreation() throws(StorageFailure) {
        try query("SELECT pg_advisory_xact_lock(\(Self.creationLock))", [], "wait for other daemons")
    }

    /// Refuses other indexes than those that another daemon keeps: one that is dropped is missing there, and what it
    /// writes would be missing in a further one.
    func refuseOtherIndexes(
        of collection: PostgreSQLCollection, than paths: [String], _ lease: Lease
    ) throws(StorageFailure) {
        let declared = try declaredIndexes(of: collection.number).map(\.path)
        // As bytes: Swift takes texts for equal that the host tells apart.
        let (known, wanted) = (Set(declared.map { Array($0.utf8) }), Set(paths.map { Array($0.utf8) }))
        if known == wanted { return }
        guard let other = try lease.otherDaemon(connection, wait) else { return }
        let paths = declared.map { "\"\($0)\"" }.joined(separator: ", ")
        let indexes = declared.isEmpty ? "no indexes" : "indexes on \(paths)"
        throw StorageFailure(
            .unsupported,
            """
            table \(collection.tableName) has \(indexes), which daemons that share a schema have to agree on, and \
            \(other) is there: give all the same ones, and stop all but one to change them
            """)
    }

    /// What waits, as an expression, while another daemon has that lock, and keeps none of its kind waiting.
    static var sharingCreation: String { "pg_advisory_xact_lock_shared(\(creationLock))" }

    /// "crudd" in ASCII. Those of ids are hashes (``IDLocks``).
    private static let creationLock: Int64 = 0x63_72_75_64_64

    /// Names the table of a collection that has none.
    ///
    /// - Parameters:
    ///   - isPlain: whether the name is to be one that SQL of the administrator can quote in any way, and that leaves
    ///     room for the numbers of shards.
    ///   - attempt: how often this has collided with another daemon.
    func newEntry(_ name: String, isPlain: Bool, attempt: Int) throws(StorageFailure) -> Entry {
        let number = try query(
            "SELECT \(Self.numberStep(attempt)) + coalesce(max(number), 0) FROM \(collections)", [],
            "count collections"
        ).integer(0, 0)
        let isReserved = name.lowercased().hasPrefix("crudd_") || name.utf8.count > PostgreSQLName.maximumBytes
        let isUsable =
            !isReserved
            && (!isPlain || name.utf8.count <= Self.maximumPlainBytes && name.utf8.allSatisfy(Self.isPlain))
        if isUsable, try !schema.exists(name, connection, wait) { return Entry(number: number, tableName: name) }
        if isPlain { return Entry(number: number, tableName: "crudd_\(number)") }
        let longName = "crudd_\(number)_\(name)"
        return Entry(
            number: number, tableName: PostgreSQLName.prefix(of: longName, bytes: PostgreSQLName.maximumBytes))
    }

    /// How far behind the greatest number a new one is: daemons that have collided spread.
    private static func numberStep(_ attempt: Int) -> Int { Int.random(in: 1...(1 << min(attempt, 6))) }

    /// How long the name of a table may be that SQL of the administrator distributes: Citus appends `_` and a number of
    /// up to 64 bits, and its transaction waits for itself where the result is cut.
    private static let maximumPlainBytes = PostgreSQLName.maximumBytes - 20

    /// Whether a byte of a name stands for itself within quotes of every kind.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: " "), 0x80...:
            true
        default: false
        }
    }

    /// Makes the table of a collection; to be called in a transaction.
    func createTable(
        _ entry: Entry, _ name: String, _ format: PostgreSQLCollection.Format
    ) throws(StorageFailure) {
        try query(
            "INSERT INTO \(collections) (number, name, format, table_name) VALUES (\(entry.number), $1, $2, $3)",
            [name, format.rawValue, entry.tableName], "create collection \(name)")
        let table = schema.table(entry.tableName)
        let prefix = "crudd_\(entry.number)"
        // The default of the revision is for rows that people insert by hand.
        try run(
            """
            CREATE TABLE \(table) (
                id text COLLATE "C" CONSTRAINT \(prefix)_id PRIMARY KEY,
                revision text NOT NULL DEFAULT CAST(gen_random_uuid() AS text),
                expires_at bigint,
                sequence bigint,
                item \(format.columnType) NOT NULL
            );
            CREATE INDEX \(prefix)_expiry ON \(table) (expires_at, id) WHERE expires_at IS NOT NULL
            """, "create the table of collection \(name)")
    }

    /// Drops all tables of a collection, to be called in a transaction, and says whether there were any.
    func dropTables(_ name: String) throws(StorageFailure) -> Bool {
        let what = "drop collection \(name)"
        let tables = try query("SELECT number, table_name FROM \(collections) WHERE name = $1", [name], what)
        for row in 0..<tables.rowCount {
            for table in [tables.text(row, 1), removalTable(tables.integer(row, 0))] {
                try run("DROP TABLE IF EXISTS \(schema.table(table))", what)
            }
            try query("DELETE FROM \(indexes) WHERE collection = \(tables.integer(row, 0))", [], what)
            try dropHistory(of: tables.integer(row, 0))
        }
        try query("DELETE FROM \(collections) WHERE name = $1", [name], what)
        return tables.rowCount > 0
    }

    func names() throws(StorageFailure) -> [String] {
        let names = try query("SELECT DISTINCT name FROM \(collections)", [], "list collections")
        return (0..<names.rowCount).map { names.text($0, 0) }
    }

    /// Whether any record of a collection expires.
    func hasExpiring(_ entry: Entry) throws(StorageFailure) -> Bool {
        try query(
            "SELECT 1 FROM \(schema.table(entry.tableName)) WHERE expires_at IS NOT NULL LIMIT 1", [],
            "look into table \(entry.tableName)"
        ).rowCount > 0
    }

    // MARK: Declarations

    /// What the indexes of a collection are to be, and whether its changes are remembered: what is in the tables of the
    /// catalog, whether or not the collection's own table has been changed so far.
    ///
    /// - Returns: the numbers of the indexes by their paths; nil if these are not the ones that have been declared.
    func declaration(
        of collection: PostgreSQLCollection, _ paths: [String], keepsSequences: Bool
    ) throws(StorageFailure) -> [Int64]? {
        let existing = try declaredIndexes(of: collection.number)
        let numbers = paths.compactMap { path in existing.first { $0.path.utf8.elementsEqual(path.utf8) }?.number }
        guard numbers.count == paths.count, existing.count == paths.count else { return nil }
        return try hasHistory(collection.number) == keepsSequences ? numbers : nil
    }

    /// Declares them; to be called in a transaction. That locks no records.
    ///
    /// - Parameter attempt: how often this has collided with another daemon.
    /// - Returns: the numbers of the indexes by their paths.
    func declare(
        of collection: PostgreSQLCollection, _ paths: [String], keepsSequences: Bool, attempt: Int
    ) throws(StorageFailure) -> [Int64] {
        let entry = Entry(number: collection.number, tableName: collection.tableName)
        let numbers = try declare(paths, of: entry, attempt: attempt)
        if keepsSequences { try keepHistory(of: collection) } else { try dropHistory(of: collection.number) }
        return numbers
    }

    /// Declares the indexes of a table alone, likewise.
    @discardableResult
    func declare(_ paths: [String], of entry: Entry, attempt: Int) throws(StorageFailure) -> [Int64] {
        let what = "declare the indexes of table \(entry.tableName)"
        var existing = try declaredIndexes(of: entry.number)
        for index in existing where !paths.contains(where: { $0.utf8.elementsEqual(index.path.utf8) }) {
            try query("DELETE FROM \(indexes) WHERE number = \(index.number)", [], what)
        }
        var numbers: [Int64] = []
        for path in paths {
            if let index = existing.first(where: { $0.path.utf8.elementsEqual(path.utf8) }) {
                numbers.append(index.number)
                continue
            }
            let number = try query(
                """
                INSERT INTO \(indexes) (number, collection, path)
                SELECT \(Self.numberStep(attempt)) + greatest(\(try highestColumn()), coalesce(max(number), 0)),
                    \(entry.number), $1
                FROM \(indexes) RETURNING number
                """, [path], what
            ).integer(0, 0)
            existing.append((number, path))
            numbers.append(number)
        }
        return numbers
    }

    /// The highest number of a column of keys: one that is still to be dropped keeps its number for itself.
    private func highestColumn() throws(StorageFailure) -> Int64 {
        try query(
            """
            SELECT coalesce(max(CAST(substr(attname, 11) AS bigint)), 0) FROM pg_catalog.pg_attribute
            JOIN pg_catalog.pg_class AS t ON t.oid = attrelid JOIN pg_catalog.pg_namespace AS s ON s.oid = relnamespace
            WHERE nspname = $1 AND relkind = 'r' AND NOT attisdropped AND attname ~ '^crudd_key_[0-9]{1,17}$'
            """, [schema.name], "number an index"
        ).integer(0, 0)
    }

    func declaredIndexes(of collection: Int64) throws(StorageFailure) -> [(number: Int64, path: String)] {
        let result = try query(
            "SELECT number, path FROM \(indexes) WHERE collection = \(collection)", [],
            "find the indexes of collection \(collection)")
        return (0..<result.rowCount).map { (result.integer($0, 0), result.text($0, 1)) }
    }

    // MARK: Statements

    @discardableResult
    func query(_ sql: String, _ texts: [String], _ action: String) throws(StorageFailure) -> QueryResult {
        var parameters = Parameters()
        for text in texts { parameters.add(text) }
        return try connection.query(sql, parameters, texts.map { _ in .text }, wait).check(action)
    }

    func run(_ script: String, _ action: String) throws(StorageFailure) {
        try connection.run(script: script, wait).check(action)
    }
}
