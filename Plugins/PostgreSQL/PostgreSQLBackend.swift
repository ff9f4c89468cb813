import CRUDPluginKit
import Synchronization

/// A schema of a PostgreSQL server: one connection that writes, one that keeps the lease, and one for each reader.
final class PostgreSQLBackend: StorageBackend {
    static let name = "postgresql"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .transactions, .durable, .indexes, .sequences, .expiry, .takesHistory, .shared,
    ]
    static let backupAdvice: String? = "use pg_dump, or a base backup of the server"

    private let options: PostgreSQLOptions
    private let settings: ConnectionSettings
    private let schema: Schema
    private let availability: Availability
    private let writer: Writer
    private let keeper: LeaseKeeper
    private let worker: SchemaWorker
    /// Nil where this daemon alone writes, or the server cannot number changes.
    private let watcher: FeedWatcher?
    private let host: Host
    let capabilities: Capabilities
    let lastSequence: UInt64
    let identity: UInt64
    private let commits = CommitInProgress()
    /// Open collections by name and format, as bytes: Swift takes texts for equal that the host tells apart.
    private var collections: [[UInt8]: [[UInt8]: PostgreSQLCollection]] = [:]

    /// How long the opening of a collection waits for changes of its table. Those of a small one take milliseconds.
    private static let changeMilliseconds: Int64 = 5000

    init(options: PostgreSQLOptions, host: Host, call: CallContext) throws(StorageFailure) {
        self.options = options
        self.host = host
        let settings = ConnectionSettings(options)
        var schema = Schema(name: options.schema)
        let availability = Availability(host)
        let lease = Lease(schema, isShared: options.isShared)
        let choice = ServerChoice(settings, host)
        let confirmationLimit = LeaseKeeper.replyTimeoutMilliseconds
        do throws(StorageFailure) {
            var start: Int64 = 0
            let chosen = try choice.choose(because: "the backend is opened") { (connection) throws(StorageFailure) in
                try schema.prepare(connection, host, Wait(milliseconds: 10_000))
                start = Clock.boot
                try lease.acquire(connection, Wait(milliseconds: confirmationLimit))
            }
            availability.confirmed(0, chosen.server, chosen.failOver, until: start + Lease.certainty)
            let connection = try Connection(settings, to: availability.server(), availability)
            try Self.checkSessions(chosen.connection, connection, Wait(milliseconds: 10_000))
            var capabilities = Self.capabilities(with: options)
            if try !Self.isDurable(connection, Wait(milliseconds: 10_000)) { capabilities.remove(.durable) }
            // A commit that a crash can lose is one whose number is given out again.
            schema.numbersChanges =
                options.numbersChanges && capabilities.contains(.durable)
                && connection.identity.hasTransactionNumbers
            if schema.numbersChanges {
                try lease.numberChanges(connection, Wait(milliseconds: 10_000))
            } else if options.isShared {
                capabilities.remove(.sequences)
            }
            self.capabilities = capabilities
            identity = try schema.identity(connection, Wait(milliseconds: 10_000))
            writer = Writer(settings, availability, lease, commits, connection, isShared: options.isShared)
            keeper = LeaseKeeper(availability, lease, choice, chosen.connection)
            try keeper.start()
        } catch {
            lease.end()
            throw error
        }
        worker = SchemaWorker(settings, schema, availability, host)
        watcher = schema.numbersChanges ? FeedWatcher(settings, schema, availability, host) : nil
        lastSequence = lease.ceiling
        (self.settings, self.schema, self.availability) = (settings, schema, availability)
        guard let watcher else { return }
        writer.committed = { watcher.changed($0) }
        // Within calls of this object.
        writer.lookAgain = { [unowned self] (connection) throws(StorageFailure) in try noteHistories(connection) }
    }

    static func capabilities(with options: PostgreSQLOptions) -> Capabilities {
        if !options.isShared { return capabilities.subtracting(.shared) }
        return capabilities.subtracting(options.numbersChanges ? .takesHistory : [.sequences, .takesHistory])
    }

    var preferredReaders: Int { options.readers }

    func close() {
        watcher?.stop()
        worker.stop()
        writer.close()
        keeper.stop()
    }

    /// It is called every few seconds while the administrator has been told of a fail-over.
    func idle(_ call: CallContext) { availability.endNotice() }

    /// Whether a commit that the server has confirmed survives its power loss.
    private static func isDurable(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        for name in ["synchronous_commit", "fsync"] {
            let value = try connection.query("SHOW \(name)", Parameters(), [], wait)
            // Other servers that speak the protocol have no such setting, and always wait for the disk.
            if value.error == nil, value.text(0, 0) == "off" { return false }
        }
        return true
    }

    /// Refuses a pooler that lends a session for one transaction: while one connection has one, the other must
    /// still be served by the process that it was served by before.
    private static func checkSessions(
        _ first: Connection, _ second: Connection, _ wait: Wait
    ) throws(StorageFailure) {
        for (busy, idle) in [(first, second), (second, first)] where idle.identity.process != 0 {
            try busy.query("BEGIN", Parameters(), [], wait).check("begin a transaction")
            let busyProcess = try ServerIdentity.process(busy, wait)
            let idleProcess = try ServerIdentity.process(idle, wait)
            try busy.query("ROLLBACK", Parameters(), [], wait).check("undo a transaction")
            guard busyProcess == busy.identity.process, idleProcess == idle.identity.process else {
                throw StorageFailure(
                    .unsupported,
                    """
                    the connection leads to a pooler that does not keep sessions; \
                    it must have pool_mode = session (PgBouncer)
                    """)
            }
        }
    }

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> PostgreSQLCollection {
        let key = (name: Array(specification.name), format: Array(specification.format))
        let wait = Wait(forSchema: availability, host)
        if let collection = collections[key.name]?[key.format] {
            if !specification.isAsItIs { try update(collection, specification, wait) }
            return collection
        }
        let name = String(decoding: specification.name, as: UTF8.self)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = PostgreSQLCollection.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let creates = specification.creates
        let paths = specification.isAsItIs ? [] : Self.paths(of: specification)
        let (entry, mayExpire) = try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            return try writer.retrying(connection) { (attempt) throws(StorageFailure) in
                if options.isShared { try catalog.refuseOtherFormats(of: name, than: format) }
                if let entry = try catalog.entry(name, format) { return (entry, try catalog.hasExpiring(entry)) }
                guard creates else {
                    throw StorageFailure(.notFound, "there is no collection \(name) of format \(formatName)")
                }
                return (try create(name, format, paths, catalog, attempt: attempt), false)
            }
        }
        let collection = PostgreSQLCollection(
            number: entry.number, name: key.name, tableName: entry.tableName, table: schema.table(entry.tableName),
            removals: schema.table(removalTable(entry.number)), format: format,
            histories: schema.numbersChanges ? schema.table("crudd_history") : nil)
        collection.mayExpire.store(mayExpire || options.isShared, ordering: .relaxed)
        if specification.isAsItIs {
            try look(at: collection, wait)
        } else {
            try update(collection, specification, wait)
        }
        collections[key.name, default: [:]][key.format] = collection
        return collection
    }

    private static func paths(of specification: borrowing CollectionSpecification) -> [String] {
        (0..<specification.indexCount).map { String(decoding: specification.index(at: $0), as: UTF8.self) }
    }

    /// Makes the table of a collection, and sets it up as the administrator wants. Its indexes are declared with it:
    /// another daemon never finds it without them.
    private func create(
        _ name: String, _ format: PostgreSQLCollection.Format, _ paths: [String], _ catalog: Catalog, attempt: Int
    ) throws(StorageFailure) -> Catalog.Entry {
        let entry = try catalog.newEntry(name, isPlain: options.tableSetup != nil, attempt: attempt)
        let setup = options.tableSetup.map { replacing($0, with: schema.table(entry.tableName)) }
        let connection = catalog.connection
        var isSetUp = setup == nil
        // Without the lease's row: no other session uses it, and a statement of the administrator's may take long.
        try writer.transaction(connection, catalog.wait, isFenced: false) { () throws(StorageFailure) in
            if options.isShared {
                try catalog.lockCreation()
                try catalog.refuseOtherFormats(of: name, than: format)
            }
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
            try catalog.declare(paths, of: entry, attempt: attempt)
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
        let table = try writer.use { (connection) throws(StorageFailure) in
            try Catalog(schema: schema, connection: connection, wait: wait.on(connection)).state(of: collection)
        }
        collection.note(indexes: [], keepsSequences: table.hasRemovals, table)
    }

    /// Declares the indexes of a collection, and has its table changed where it is not what has been declared. Until
    /// that is done the collection serves without the indexes that are missing.
    private func update(
        _ collection: PostgreSQLCollection, _ specification: borrowing CollectionSpecification, _ wait: Wait
    ) throws(StorageFailure) {
        let paths = Self.paths(of: specification)
        let hasFeed = specification.keepsSequences
        var isComplete = false
        try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait.on(connection))
            let declared = try writer.retrying(connection) { (attempt) throws(StorageFailure) in
                // What other daemons have feeds of is remembered here, too.
                var keepsSequences = hasFeed
                if !hasFeed, schema.numbersChanges { keepsSequences = try catalog.hasHistory(collection.number) }
                let existing = try catalog.declaration(of: collection, paths, keepsSequences: keepsSequences)
                if let existing { return (indexes: existing, keepsSequences: keepsSequences) }
                return try declare(collection, paths, hasFeed: hasFeed, catalog, attempt)
            }
            collection.note(
                indexes: declared.indexes, keepsSequences: declared.keepsSequences, try catalog.state(of: collection))
            if collection.isComplete { isComplete = try !catalog.hasForeignSequences(collection) }
        }
        watcher?.open(collection, hasFeed: hasFeed)
        if isComplete { return }
        worker.change(collection, waiting: collection.isSmall ? Self.changeMilliseconds : 0)
    }

    /// Declares indexes and history of a collection. Where others share the schema, those of which one has a feed keep
    /// theirs, and the others find out before they write again that removals are remembered.
    ///
    /// - Returns: the numbers of the indexes, and whether removals are.
    private func declare(
        _ collection: PostgreSQLCollection, _ paths: [String], hasFeed: Bool, _ catalog: Catalog, _ attempt: Int
    ) throws(StorageFailure) -> (indexes: [Int64], keepsSequences: Bool) {
        var declared: (indexes: [Int64], keepsSequences: Bool) = ([], hasFeed)
        let isNumbered = schema.numbersChanges
        // Its own row is locked once it is its turn, so that no two wait for each other.
        try writer.transaction(catalog.connection, catalog.wait, isFenced: !isNumbered) { () throws(StorageFailure) in
            var hasHistory = false
            if isNumbered {
                try writer.lockDeclarations(catalog)
                hasHistory = try catalog.hasHistory(collection.number)
                declared.keepsSequences = hasFeed || hasHistory
            }
            if options.isShared { try catalog.refuseOtherIndexes(of: collection, than: paths, writer.lease) }
            declared.indexes = try catalog.declare(
                of: collection, paths, keepsSequences: declared.keepsSequences, attempt: attempt)
            if isNumbered, declared.keepsSequences, !hasHistory {
                try catalog.run(writer.lease.raiseOthers, "have other daemons remember changes")
            }
        }
        return declared
    }

    /// Notes which collections have a history by now, as other daemons have declared.
    private func noteHistories(_ connection: Connection) throws(StorageFailure) {
        let unaware = collections.values.flatMap(\.values).filter { !$0.layout.keepsSequences }
        if unaware.isEmpty { return }
        let wait = Wait(milliseconds: 10_000).on(connection)
        let histories = try Catalog(schema: schema, connection: connection, wait: wait).collectionsWithHistory()
        for collection in unaware where histories.contains(collection.number) { collection.noteHistory() }
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        let text = String(decoding: name, as: UTF8.self)
        let wait = Wait(forSchema: availability, host)
        var wasThere = false
        // Also where it may have failed: a collection that is still there is found again when it is opened.
        for collection in (collections.removeValue(forKey: Array(name)) ?? [:]).values {
            worker.forget(collection)
            watcher?.forget(collection)
        }
        try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            try writer.retrying(connection) { (_) throws(StorageFailure) in
                try writer.transaction(connection, wait, lossStatus: .outcomeUnknown) { () throws(StorageFailure) in
                    // The lease must not wait for a session that holds the table.
                    try catalog.run("SET LOCAL lock_timeout = '100ms'", "drop collection \(text)")
                    wasThere = try catalog.dropTables(text)
                }
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
        PostgreSQLReader(settings, availability, commits, host, options.isShared ? writer : nil)
    }

    func write(_ batch: borrowing WriteBatch<PostgreSQLCollection>) throws(StorageFailure) {
        try writer.write(batch)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<PostgreSQLCollection>) throws(StorageFailure) -> Int64? {
        try writer.removeExpired(request)
    }

    func trimHistory(_ request: borrowing TrimRequest<PostgreSQLCollection>) throws(StorageFailure) -> History {
        let (number, before, limit) = (request.collection.number, request.before, request.limit)
        try requireHistory(of: request.collection)
        let wait = Wait(request.call, availability, isInterruptible: false)
        return try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            try renumberCopies(in: request.collection, catalog)
            let (history, old) = try catalog.history(of: number, before: before, limit: limit)
            if old == 0 { return shown(history, connection) }
            let hasUpkeep = try writer.lease.takeUpkeep(connection, wait.on(connection))
            guard hasUpkeep else { return shown(history, connection) }
            var trimmed = 0
            try writer.transaction(connection, wait) { () throws(StorageFailure) in
                if options.isShared { try catalog.lockUpkeep(writer.lease) }
                trimmed = try catalog.trimHistory(of: number, before: before, limit: limit)
            }
            var after = try catalog.history(of: number, before: before, limit: 0).history
            after.trimmed = trimmed
            return shown(after, connection)
        }
    }

    /// A history with the identity that the host knows it by.
    private func shown(_ history: History, _ connection: Connection) -> History {
        var history = history
        if schema.numbersChanges {
            history.identity = connection.identity.historyIdentity(history.identity)
        }
        return history
    }

    func takeHistory(_ history: borrowing TakenHistory<PostgreSQLCollection>) throws(StorageFailure) {
        let collection = history.collection
        try requireHistory(of: collection)
        try writer.reserve(through: history.lastSequence, history.call)
        let removals = (0..<history.removalCount).map { position in
            let removal = history.removal(position)
            return (id: Array(removal.id), sequence: removal.sequence)
        }
        let (identity, forgotten, now) = (history.identity, history.forgotten, history.now)
        let wait = Wait(history.call, availability, isInterruptible: false)
        try writer.use { (connection) throws(StorageFailure) in
            let catalog = Catalog(schema: schema, connection: connection, wait: wait)
            try writer.transaction(connection, wait) { () throws(StorageFailure) in
                try catalog.takeHistory(of: collection.number, identity, forgotten: forgotten, removals, at: now)
            }
        }
    }

    private func requireHistory(of collection: PostgreSQLCollection) throws(StorageFailure) {
        guard collection.layout.keepsSequences else {
            throw StorageFailure(
                .unsupported, "table \(collection.tableName) was not opened to keep sequence numbers")
        }
    }

    /// Has the host number rows that SQL has copied with their sequence numbers.
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
