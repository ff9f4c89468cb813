import CRUDModel
import CRUDPluginKit
import CSQLite

/// A SQLite database file: one connection that writes, and one for each reader.
final class SQLiteBackend: StorageBackend {
    static let name = "sqlite"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .readsFast, .transactions, .durable, .queries,
    ]

    private let options: SQLiteOptions
    private let readers = SQLiteReaders()
    private let writer: Writer
    private let catalog: Catalog
    /// Open collections by name and format, as bytes: Swift takes texts for equal that the host tells apart.
    private var collections: [[UInt8]: SQLiteCollection] = [:]
    private var collectionsOpened = 0
    private var indexesNumbered = 0
    private let host: Host

    init(options: SQLiteOptions, host: Host) throws(StorageFailure) {
        // Where this process has used SQLite before, it refuses; then it is only slower.
        _ = csqlite_disable_memory_statistics()
        self.options = options
        self.host = host
        let connection = try DatabaseFile(path: options.path).open(options.synchronous)
        writer = try Writer(
            connection: connection, log: WriteAheadLog(connection: connection, readers: readers, host: host))
        catalog = Catalog(connection: connection)
    }

    var capabilities: Capabilities {
        options.synchronous == .full ? Self.capabilities : Self.capabilities.subtracting(.durable)
    }

    /// The file is closed with the last reference to its connections: SQLite then checkpoints and removes the log.
    func close() {}

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> SQLiteCollection {
        let key = Array(specification.name) + [0] + Array(specification.format)
        if let collection = collections[key] {
            try update(collection, specification)
            return collection
        }
        let name = String(decoding: specification.name, as: UTF8.self)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = SQLiteCollection.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let collection = SQLiteCollection(
            number: collectionsOpened, tableName: try table(name, format, creates: specification.creates),
            format: format)
        collectionsOpened += 1
        try update(collection, specification)
        collections[key] = collection
        return collection
    }

    /// Brings a collection's indexes up to date: on a table of a million records that takes seconds for each.
    private func update(
        _ collection: SQLiteCollection, _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) {
        guard collection.format == .json else { return }
        let old = collection.indexes
        let wanted = indexes(specification, known: old)
        guard try !catalog.has(wanted, on: collection.tableName) else {
            collection.indexes = wanted
            return
        }
        // What goes is not to be looked into any more; what stays may be, meanwhile.
        collection.indexes = old.filter { index in wanted.contains { $0.path == index.path } }
        collection.indexes = try writer.transaction { () throws(StorageFailure) in
            try catalog.update(wanted, of: collection.tableName) { host.log(.warning, $0) }
        }
        // Older views do not know of the new ones.
        readers.letGo()
    }

    /// The indexes that a specification asks for, each path once.
    private func indexes(
        _ specification: borrowing CollectionSpecification, known: [PropertyIndex]
    ) -> [PropertyIndex] {
        var indexes: [PropertyIndex] = []
        for position in 0..<specification.indexCount {
            let text = specification.index(at: position)
            guard let path = PropertyPath(utf8: text), !indexes.contains(where: { $0.path == path }) else { continue }
            if let index = known.first(where: { $0.path == path }) {
                indexes.append(index)
            } else if let index = PropertyIndex(path, number: indexesNumbered) {
                indexesNumbered += 1
                indexes.append(index)
            } else {
                host.log(.warning, "no index by \(path): SQLite cannot follow names that are empty or need escapes")
            }
        }
        return indexes
    }

    private func table(
        _ name: String, _ format: SQLiteCollection.Format, creates: Bool
    ) throws(StorageFailure) -> String {
        if let table = try catalog.tableName(name, format) { return table }
        guard creates else { throw StorageFailure(.notFound, "there is no collection \(name) of format \(format)") }
        let table = try writer.transaction { () throws(StorageFailure) in
            // Another process may have been quicker.
            if let table = try catalog.tableName(name, format) { return table }
            return try catalog.createTable(name, format)
        }
        // A view that is older than the table does not show it.
        readers.letGo()
        return table
    }

    func dropCollection(named name: UnsafeRawBufferPointer) throws(StorageFailure) {
        let text = String(decoding: name, as: UTF8.self)
        let wasThere = try writer.transaction { () throws(StorageFailure) in try catalog.dropTables(text) }
        let prefix = Array(name) + [0]
        collections = collections.filter { !$0.key.starts(with: prefix) }
        // In an older view a new collection of that name would have the records of this one.
        readers.letGo()
        if !wasThere { throw StorageFailure(.notFound, "there is no collection \(text)") }
    }

    func listCollections(_ emit: (RawSpan) -> Void) throws(StorageFailure) {
        for name in try catalog.names() { emit(Array(name.utf8).span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> SQLiteReader {
        try SQLiteReader(path: options.path, readers: readers)
    }

    func write(_ batch: borrowing WriteBatch<SQLiteCollection>) throws(StorageFailure) {
        try writer.write(batch)
    }

    func idle() {
        writer.idle()
    }
}
