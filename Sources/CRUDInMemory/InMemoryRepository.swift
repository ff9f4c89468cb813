@_exported public import CRUDClient

/// Records of one collection in the memory of this process: what an application's unit tests have instead of a daemon.
///
/// ```swift
/// @Test func registers() async throws {
///     let clients = InMemoryRepository()
///     try await Registration(clients: clients).register(Client(email: "ada@example.org"))
///     #expect(try await clients.exists(id: "ada@example.org"))
/// }
/// ```
///
/// Everything that the daemon does to records it does as well, with the same outcomes and errors: queries are executed
/// and patches applied by the same code, items are kept as JSON text, names and limits are checked. Writes are atomic,
/// and so are transactions; every call lets other tasks run first, so that they interleave as they do with a daemon.
/// Nothing outlives the process. Calls fail with `CRUDError.Code.unavailable` and `CRUDError.Code.outcomeUnknown`
/// only if ``InMemoryDatabase/inject(_:times:in:)`` makes them, and with `CRUDError.Code.timedOut` only after a
/// deadline that `CRUDClient.withDeadline` has set.
///
/// Copies share their records. For several collections in one place, and transactions over them, see
/// ``InMemoryDatabase``.
public struct InMemoryRepository: RecordStore {
    /// Where the records are.
    public let database: InMemoryDatabase
    public let collection: String

    /// Records of their own.
    ///
    /// - Parameters:
    ///   - collection: what the collection is called; it shows in nothing but ``collection``.
    ///   - clock: determines when records expire; see ``InMemoryDatabase/init(clock:)``.
    public init(collection: String = "records", clock: any Clock<Duration> = ContinuousClock()) {
        self.init(database: InMemoryDatabase(clock: clock), collection: collection)
    }

    init(database: InMemoryDatabase, collection: String) {
        self.database = database
        self.collection = collection
    }

    // MARK: Reading

    public func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item> {
        try await database.call(.reads, in: collection) {
            try database.record(id, in: collection).versioned(in: collection)
        }
    }

    public func readVersioned<Item: Decodable>(ids: [String], as type: Item.Type) async throws -> [Versioned<Item>] {
        var rest = ids[...]
        var records: [Record] = []
        var seen: Set<[UInt8]> = []
        // In the parts in which a client asks the daemon, which need not be of one moment.
        repeat {
            let part = Array(rest.prefix(DefaultLimits.batch))
            rest = rest.dropFirst(part.count)
            let found = try await database.call(.reads, in: collection) { try database.records(part, in: collection) }
            records += found.filter { seen.insert($0.id).inserted }
        } while !rest.isEmpty
        return try records.map { try $0.versioned(in: collection) }
    }

    public func exists(id: String) async throws -> Bool {
        try await database.call(.reads, in: collection) {
            try !database.records([id], in: collection, "id").isEmpty
        }
    }

    public func query<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item> {
        try await database.call(.reads, in: collection) {
            try RecordPage(json: database.page(query, in: collection), of: query, in: collection)
        }
    }

    public func changes(_ query: ChangeQuery) async throws -> ChangePage {
        try await database.call(.reads, in: collection) { try await database.changes(query, in: collection) }
    }

    public func count(_ selection: RecordSelection) async throws -> Int {
        try await database.call(.reads, in: collection) { try database.count(selection, in: collection) }
    }

    // MARK: Writing

    @discardableResult
    public func create<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await put(item, id, if: .absent)
    }

    @discardableResult
    public func create<Item: Encodable>(id: String, item: Item, expiresIn: Duration?) async throws -> Revision {
        try await put(item, id, if: .absent, expiresIn)
    }

    @discardableResult
    public func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await put(item, id, if: .present(ifRevision))
    }

    @discardableResult
    public func update<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await put(item, id, if: .present(ifRevision), expiresIn)
    }

    @discardableResult
    public func upsert<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await put(item, id, if: .unchanged(ifRevision))
    }

    @discardableResult
    public func upsert<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await put(item, id, if: .unchanged(ifRevision), expiresIn)
    }

    public func delete(id: String, ifRevision: Revision?) async throws {
        try await database.call(.writes, in: collection) {
            try database.write(id, in: collection) { tables throws(CRUDError) in
                try tables.delete(id, collection, ifRevision: ifRevision)
            }
        }
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await self.patch(id: id, with: patch, ifRevision: ifRevision, upsert: upsert, expiry: nil, as: type)
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await self.patch(
            id: id, with: patch, applying: FieldOperations(), ifRevision: ifRevision, upsert: upsert, expiry: expiry,
            as: type)
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem?, applying operations: FieldOperations, ifRevision: Revision?,
        upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        let texts = try operations.texts()
        let precondition: Tables.Precondition = upsert ? .unchanged(ifRevision) : .present(ifRevision)
        var record = try await database.call(.writes, in: collection) {
            _ = try RequestCheck.fieldPatch(texts)
            return try database.write(id, in: collection, patch, expiry) { tables throws(CRUDError) in
                try tables.patch(patch, texts, id, collection, if: precondition, expiry)
            }
        }
        // The daemon's reply to a patch does not have it either.
        record.expiresAt = nil
        return try record.versioned(in: collection)
    }

    @discardableResult
    public func deleteMatching(_ selection: RecordSelection) async throws -> Int {
        try await database.call(.writes, in: collection) { try database.delete(selection, in: collection) }
    }

    @discardableResult
    public func batch(_ operations: [RecordOperation]) async throws -> [Result<RecordOutcome, CRUDError>] {
        try await database.call(.writes, in: collection) { try database.batch(operations, in: collection) }
    }

    @discardableResult
    public func transaction(_ operations: [RecordOperation]) async throws -> [RecordOutcome] {
        try await database.call(.writes, in: collection) { try database.transaction(operations, in: collection) }
    }

    private func put(
        _ item: some Encodable, _ id: String, if precondition: Tables.Precondition, _ expiresIn: Duration? = nil
    ) async throws -> Revision {
        let item = try EncodedItem(item)
        let expiry = expiresIn.map(Expiry.after)
        return try await database.call(.writes, in: collection) {
            try database.write(id, in: collection, item, expiry) { tables throws(CRUDError) in
                try tables.put(item, id, collection, if: precondition, expiry).revision
            }
        }
    }
}
