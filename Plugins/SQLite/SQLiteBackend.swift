import CRUDPluginKit
import CSQLite

/// A SQLite database file: one connection that writes, and one for each reader.
final class SQLiteBackend: StorageBackend {
    static let name = "sqlite"
    static let version = "2.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .readsFast, .transactions, .durable, .indexes, .sequences, .expiry, .takesHistory,
    ]
    static let storageOption: SQLiteOptions.Key? = .path
    static let makesBackups = true

    private let options: SQLiteOptions
    private let host: Host
    /// Keeps other daemons away. They would follow each other's writes, but not what is done to collections and
    /// sequence numbers.
    private let lock: FileLock
    private let readers = SQLiteReaders()
    private let foreignWrites: ForeignWrites
    private let writer: Writer
    private let catalog: Catalog
    /// Open collections by name and format, as bytes: Swift takes texts for equal that the host tells apart.
    private var collections: [[UInt8]: [[UInt8]: SQLiteCollection]] = [:]
    private var scopesNumbered = 0
    let identity: UInt64

    init(options: SQLiteOptions, host: Host, call: CallContext) throws(StorageFailure) {
        // Where this process has used SQLite before, it refuses; then it is only slower.
        _ = csqlite_disable_memory_statistics()
        self.options = options
        self.host = host
        do {
            let reserve = Reserve(beside: options.path, bytes: options.reserve, host: host)
            let connection = try Self.open(options, reserve, host)
            lock = try FileLock.shared("\(options.path)-lock")
            try reserve.open()
            foreignWrites = ForeignWrites(connection: connection)
            catalog = Catalog(connection: connection)
            let database = try DatabaseRoom(connection: connection, path: options.path)
            let log = WriteAheadLog(
                connection: connection, copier: try LogCopier(options, readers: readers), readers: readers,
                database: database, reserve: reserve, host: host)
            writer = try Writer(
                connection: connection, log: log, database: database, reserve: reserve, foreignWrites: foreignWrites,
                host: host)
            let schema = Schema(connection: connection)
            if try schema.isOutdated {
                try writer.transaction(.frees, waiting: .brief) { () throws(StorageFailure) in try schema.update() }
            }
            try writer.readSequenceCeiling()
            identity = try schema.identity
            foreignWrites.start()
        } catch let error where error.status == .noSpace {
            throw StorageFailure(.unavailable, error.message)
        }
    }

    /// Opens the database file, which needs room for what SQLite keeps beside it.
    private static func open(
        _ options: SQLiteOptions, _ reserve: Reserve, _ host: Host
    ) throws(StorageFailure) -> Connection {
        let file = DatabaseFile(path: options.path, host: host)
        do {
            return try file.open(options.synchronous)
        } catch let error where error.status == .noSpace {
            guard reserve.release() else { throw error }
            return try file.open(options.synchronous)
        }
    }

    var capabilities: Capabilities {
        options.synchronous == .full ? Self.capabilities : Self.capabilities.subtracting(.durable)
    }

    var lastSequence: UInt64 { writer.sequenceCeiling }

    var commitCounter: CommitCounter? { foreignWrites.counter }

    /// The file is closed with the last reference to its connections: SQLite then checkpoints and removes the log.
    func close() {}

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> SQLiteCollection {
        let key = (name: Array(specification.name), format: Array(specification.format))
        if let collection = collections[key.name]?[key.format] {
            if !specification.isAsItIs { try update(collection, specification) }
            return collection
        }
        let name = String(decoding: specification.name, as: UTF8.self)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = SQLiteCollection.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let entry = try entry(name, format, creates: specification.creates)
        let collection = SQLiteCollection(
            number: entry.number, tableName: entry.tableName, format: format,
            scope: makeScope(quotedIdentifier(entry.tableName), entry.number, []))
        if specification.isAsItIs {
            // No key is made or looked for, but removals are remembered.
            collection.layout = SQLiteCollection.Layout(
                scope: collection.scope, indexes: [],
                keepsSequences: try catalog.isHistoryInPlace(
                    of: entry.number, try catalog.indexNames(of: collection), keepsSequences: true))
        } else {
            try update(collection, specification)
        }
        collections[key.name, default: [:]][key.format] = collection
        return collection
    }

    private func entry(
        _ name: String, _ format: SQLiteCollection.Format, creates: Bool
    ) throws(StorageFailure) -> Catalog.Entry {
        if let entry = try catalog.entry(name, format) { return entry }
        guard creates else { throw StorageFailure(.notFound, "there is no collection \(name) of format \(format)") }
        let entry = try writer.transaction(.grows) { () throws(StorageFailure) in
            // Another process may have been quicker.
            if let entry = try catalog.entry(name, format) { return entry }
            return try catalog.createTable(name, format)
        }
        // A snapshot that is older than the table does not show it.
        readers.releaseSnapshots()
        return entry
    }

    /// Brings a collection's indexes up to date.
    private func update(
        _ collection: SQLiteCollection, _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) {
        let paths = (0..<specification.indexCount).map { String(decoding: specification.index(at: $0), as: UTF8.self) }
        let keepsSequences = specification.keepsSequences
        let indexes: [Int64]
        if let existing = try catalog.indexes(of: collection, paths, keepsSequences: keepsSequences) {
            indexes = existing
        } else {
            // Without it not even deletions would be possible.
            indexes = try writer.transaction(.frees) { () throws(StorageFailure) in
                try catalog.setIndexes(of: collection, paths, keepsSequences: keepsSequences)
            }
        }
        let old = collection.layout
        if old.scope.indexes == indexes, old.keepsSequences == keepsSequences { return }
        let table = collection.scope.table
        collection.layout = SQLiteCollection.Layout(
            scope: makeScope(table, collection.number, indexes),
            indexes: indexes.map { index in
                old.indexes.first { $0.indexes == [index] } ?? makeScope(table, collection.number, [index])
            },
            keepsSequences: keepsSequences)
        // Older snapshots do not know of the new ones.
        readers.releaseSnapshots()
    }

    private func makeScope(_ table: String, _ collection: Int64, _ indexes: [Int64]) -> StatementScope {
        defer { scopesNumbered += 1 }
        return StatementScope(number: scopesNumbered, table: table, collection: collection, indexes: indexes)
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        let text = String(decoding: name, as: UTF8.self)
        let wasThere = try writer.transaction(.frees) { () throws(StorageFailure) in try catalog.dropTables(text) }
        collections[Array(name)] = nil
        // In an older snapshot a new collection of that name would have the records of this one.
        readers.releaseSnapshots()
        if !wasThere { throw StorageFailure(.notFound, "there is no collection \(text)") }
    }

    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        for name in try catalog.names() { emit(Array(name.utf8).span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> SQLiteReader {
        try SQLiteReader(options, readers: readers, foreignWrites: foreignWrites, host: host)
    }

    func write(_ batch: borrowing WriteBatch<SQLiteCollection>) throws(StorageFailure) {
        try writer.write(batch)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<SQLiteCollection>) throws(StorageFailure) -> Int64? {
        try writer.removeExpired(request)
    }

    func trimHistory(_ request: borrowing TrimRequest<SQLiteCollection>) throws(StorageFailure) -> History {
        try writer.trimHistory(request)
    }

    func takeHistory(_ history: borrowing TakenHistory<SQLiteCollection>) throws(StorageFailure) {
        try writer.take(history)
    }

    func beginBackup(to path: String, _ call: CallContext) throws(StorageFailure) -> any StorageBackup {
        try DatabaseBackup(of: options.path, to: path)
    }

    func idle(_ call: CallContext) {
        writer.idle(now: call.now)
    }
}
