import CRUDPluginKit
import Synchronization

/// A schema of a PostgreSQL server: one connection that writes, one that keeps the lease, and one for each reader.
final class PostgreSQLBackend: StorageBackend {
    static let name = "postgresql"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .transactions, .durable, .indexes, .sequences, .expiry,
    ]

    private let options: PostgreSQLOptions
    private let settings: ConnectionSettings
    private let schema: Schema
    private let availability: Availability
    private let writer: Writer
    private let keeper: LeaseKeeper
    private let host: Host
    let capabilities: Capabilities
    let lastSequence: UInt64
    /// Open collections by name and format, as bytes: Swift takes texts for equal that the host tells apart.
    private var collections: [[UInt8]: PostgreSQLCollection] = [:]
    private var scopesNumbered = 0

    init(options: PostgreSQLOptions, host: Host, call: CallContext) throws(StorageFailure) {
        self.options = options
        self.host = host
        let settings = ConnectionSettings(options)
        let schema = Schema(name: options.schema)
        let availability = Availability(host)
        let lease = Lease(schema, isShared: options.isShared)
        let choice = ServerChoice(settings, host)
        let confirmationLimit = LeaseKeeper.replyTimeoutMilliseconds
        do throws(StorageFailure) {
            var start: Int64 = 0
            let chosen = try choice.choose(because: "the backend is opened") { (connection) throws(StorageFailure) in
                try schema.prepare(connection, Wait(milliseconds: 10_000))
                start = Clock.boot
                try lease.acquire(connection, Wait(milliseconds: confirmationLimit))
            }
            availability.confirmed(0, chosen.server, until: start + Lease.certainty)
            let connection = try Connection(settings, to: availability.server(), availability)
            var capabilities = Self.capabilities(with: options)
            if try !Self.isDurable(connection, Wait(milliseconds: 10_000)) { capabilities.remove(.durable) }
            self.capabilities = capabilities
            writer = Writer(settings, availability, lease, connection, isShared: options.isShared)
            keeper = LeaseKeeper(availability, lease, choice, chosen.connection)
            try keeper.start()
        } catch {
            lease.end()
            throw error
        }
        lastSequence = lease.ceiling
        (self.settings, self.schema, self.availability) = (settings, schema, availability)
    }

    /// Whoever shares a schema does not learn of the others' changes.
    static func capabilities(with options: PostgreSQLOptions) -> Capabilities {
        options.isShared ? capabilities.subtracting(.sequences) : capabilities
    }

    var preferredReaders: Int { options.readers }

    func close() {
        writer.close()
        keeper.stop()
    }

    /// Whether a commit that the server has confirmed survives its power loss.
    private static func isDurable(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        for name in ["synchronous_commit", "fsync"] {
            let value = try connection.query("SHOW \(name)", Parameters(), [], wait)
            // Other servers that speak the protocol have no such setting, and always wait for the disk.
            if value.error == nil, value.text(0, 0) == "off" { return false }
        }
        return true
    }

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> PostgreSQLCollection {
        let key = Array(specification.name) + [0] + Array(specification.format)
        let wait = Wait(forSchema: availability, host)
        if let collection = collections[key] {
            if !specification.isAsItIs { try update(collection, specification, wait) }
            return collection
        }
        let name = String(decoding: specification.name, as: UTF8.self)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = PostgreSQLCollection.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let creates = specification.creates
        let (entry, mayExpire) = try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            return try writer.retrying(connection) { (attempt) throws(StorageFailure) in
                if let entry = try catalog.entry(name, format) { return (entry, try catalog.hasExpiring(entry)) }
                guard creates else {
                    throw StorageFailure(.notFound, "there is no collection \(name) of format \(formatName)")
                }
                return (try create(name, format, catalog, attempt: attempt), false)
            }
        }
        let collection = PostgreSQLCollection(
            number: entry.number, tableName: entry.tableName, format: format,
            scope: makeScope(entry, format, []))
        collection.mayExpire.store(mayExpire || options.isShared, ordering: .relaxed)
        if specification.isAsItIs {
            try look(at: collection, wait)
        } else {
            try update(collection, specification, wait)
        }
        collections[key] = collection
        return collection
    }

    /// Makes the table of a collection, and sets it up as the administrator wants.
    private func create(
        _ name: String, _ format: PostgreSQLCollection.Format, _ catalog: Catalog, attempt: Int
    ) throws(StorageFailure) -> Catalog.Entry {
        let entry = try catalog.newEntry(name, isPlain: options.tableSetup != nil, attempt: attempt)
        let setup = options.tableSetup.map { replacing($0, with: schema.table(entry.tableName)) }
        let connection = catalog.connection
        var isSetUp = setup == nil
        try writer.transaction(connection, catalog.wait) { () throws(StorageFailure) in
            try catalog.createTable(entry, name, format)
            if let setup {
                try connection.query("SAVEPOINT table_setup", Parameters(), [], catalog.wait).check("set a savepoint")
                let result = try connection.run(script: setup, catalog.wait)
                // Some statements refuse to be part of a transaction.
                if result.error?.state == "25001" {
                    try connection.query("ROLLBACK TO SAVEPOINT table_setup", Parameters(), [], catalog.wait)
                        .check("return to a savepoint")
                } else {
                    try result.check("run table_setup for table \(entry.tableName)")
                    isSetUp = true
                }
            }
        }
        if !isSetUp, let setup {
            do throws(StorageFailure) {
                try connection.run(script: setup, catalog.wait)
                    .check("run table_setup for table \(entry.tableName)")
            } catch {
                try? writer.transaction(connection, catalog.wait) { () throws(StorageFailure) in
                    _ = try catalog.dropTables(name)
                }
                throw error
            }
        }
        return entry
    }

    private func replacing(_ template: String, with table: String) -> String {
        var pieces: [Substring] = []
        var rest = template[...]
        while let range = rest.firstRange(of: "{table}") {
            pieces += [rest[..<range.lowerBound], table[...]]
            rest = rest[range.upperBound...]
        }
        return (pieces + [rest]).joined()
    }

    /// Leaves a collection as it is: no key is made or looked for, but removals are remembered.
    private func look(at collection: PostgreSQLCollection, _ wait: Wait) throws(StorageFailure) {
        let keepsSequences = try writer.use { (connection) throws(StorageFailure) in
            try Catalog(schema: schema, connection: connection, wait: wait)
                .isHistoryInPlace(of: collection.number, keepsSequences: true)
        }
        collection.layout = PostgreSQLCollection.Layout(
            scope: collection.scope, indexes: [], keepsSequences: keepsSequences)
    }

    /// Brings a collection's indexes up to date.
    private func update(
        _ collection: PostgreSQLCollection, _ specification: borrowing CollectionSpecification, _ wait: Wait
    ) throws(StorageFailure) {
        let paths = (0..<specification.indexCount).map { String(decoding: specification.index(at: $0), as: UTF8.self) }
        let keepsSequences = specification.keepsSequences
        let indexes = try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            return try writer.retrying(connection) { (attempt) throws(StorageFailure) in
                if let existing = try catalog.indexes(of: collection, paths, keepsSequences: keepsSequences) {
                    return existing
                }
                var made: [Int64] = []
                try writer.transaction(connection, wait) { () throws(StorageFailure) in
                    made = try catalog.setIndexes(
                        of: collection, paths, keepsSequences: keepsSequences, attempt: attempt)
                }
                return made
            }
        }
        let old = collection.layout
        if old.scope.indexes == indexes, old.keepsSequences == keepsSequences { return }
        let entry = Catalog.Entry(number: collection.number, tableName: collection.tableName)
        collection.layout = PostgreSQLCollection.Layout(
            scope: makeScope(entry, collection.format, indexes),
            indexes: indexes.map { index in
                old.indexes.first { $0.indexes == [index] } ?? makeScope(entry, collection.format, [index])
            },
            keepsSequences: keepsSequences)
    }

    private func makeScope(
        _ entry: Catalog.Entry, _ format: PostgreSQLCollection.Format, _ indexes: [Int64]
    ) -> StatementScope {
        defer { scopesNumbered += 1 }
        return StatementScope(
            number: scopesNumbered, table: schema.table(entry.tableName),
            removals: schema.table(removalTable(entry.number)), itemType: format.columnType, indexes: indexes)
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        let text = String(decoding: name, as: UTF8.self)
        let wait = Wait(forSchema: availability, host)
        var wasThere = false
        // Also where it may have failed: a collection that is still there is found again when it is opened.
        let prefix = Array(name) + [0]
        collections = collections.filter { !$0.key.starts(with: prefix) }
        try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            try writer.transaction(connection, wait, lossStatus: .outcomeUnknown) { () throws(StorageFailure) in
                wasThere = try catalog.dropTables(text)
            }
        }
        if !wasThere { throw StorageFailure(.notFound, "there is no collection \(text)") }
    }

    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        let wait = Wait(call, availability, isInterruptible: true)
        let names = try writer.use { (connection) throws(StorageFailure) in
            try Catalog(schema: schema, connection: connection, wait: wait).names()
        }
        for name in names { emit(Array(name.utf8).span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> PostgreSQLReader {
        PostgreSQLReader(settings, availability, host, isShared: options.isShared)
    }

    func write(_ batch: borrowing WriteBatch<PostgreSQLCollection>) throws(StorageFailure) {
        try writer.write(batch)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<PostgreSQLCollection>) throws(StorageFailure) -> Int64? {
        try writer.removeExpired(request)
    }

    func trimHistory(_ request: borrowing TrimRequest<PostgreSQLCollection>) throws(StorageFailure) -> History {
        let (number, before, limit) = (request.collection.number, request.before, request.limit)
        guard request.collection.layout.keepsSequences else {
            throw StorageFailure(
                .unsupported, "table \(request.collection.tableName) was not opened to keep sequence numbers")
        }
        let wait = Wait(request.call, availability, isInterruptible: false)
        return try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            try renumberCopies(in: request.collection, catalog)
            let (history, old) = try catalog.history(of: number, before: before, limit: limit)
            if old == 0 { return history }
            var trimmed = 0
            try writer.transaction(connection, wait) { () throws(StorageFailure) in
                trimmed = try catalog.trimHistory(of: number, before: before, limit: limit)
            }
            var after = try catalog.history(of: number, before: before, limit: 0).history
            after.trimmed = trimmed
            return after
        }
    }

    /// Has the host number rows that somebody has copied with their sequence numbers.
    private func renumberCopies(in collection: PostgreSQLCollection, _ catalog: Catalog) throws(StorageFailure) {
        let ids = collection.takeCopies()
        if ids.isEmpty { return }
        try writer.transaction(catalog.connection, catalog.wait) { () throws(StorageFailure) in
            try catalog.forgetSequences(of: collection, ids)
        }
        host.log(
            .warning,
            """
            \(ids.count) rows of table \(collection.tableName) had the sequence numbers of others, as copies do; they \
            get new ones
            """)
    }
}
