import CRUDModel

/// What ``Repository/transaction(_:)`` is to do: all of it or nothing.
///
/// Its methods note what is to be done and touch no record yet. They throw only where a model cannot be coded, or has no
/// id that could be a record's.
public struct Transaction<Model: Codable & Sendable> {
    /// In the order in which they are carried out.
    private(set) var operations: [RecordOperation] = []
    private let collection: String?

    init(collection: String? = nil) {
        self.collection = collection
    }

    /// Stores a new record under an id. If there is one, nothing is done at all: ``CRUDError/Code/recordExists``.
    public mutating func create(_ model: Model, id: some RecordIDConvertible) throws {
        add(.create(try item(of: model)), id.recordID)
    }

    /// Replaces the record with an id. If there is none, or it has another revision, nothing is done at all:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func update(_ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil) throws {
        add(.update(try item(of: model), ifRevision: ifRevision), id.recordID)
    }

    /// Stores a record under an id, whether it is there or not.
    public mutating func upsert(_ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil) throws {
        add(.upsert(try item(of: model), ifRevision: ifRevision), id.recordID)
    }

    /// Changes some members of a record, as ``Repository/patch(id:with:ifRevision:)`` does. If there is none, or it has
    /// another revision, nothing is done at all: ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil
    ) throws {
        add(.patch(try EncodedItem(change), ifRevision: ifRevision), id.recordID)
    }

    /// Stores what a model carries, as ``Repository/persist(_:)->Model`` does.
    public mutating func persist(_ model: some Encodable & Identifiable) throws {
        add(.patch(try item(of: model), upsert: true), try ModelCoding.recordID(of: model))
    }

    /// Stores what several models carry, in their order.
    public mutating func persist(_ models: [some Encodable & Identifiable]) throws {
        for model in models { try persist(model) }
    }

    /// Deletes a record. If there is none, or it has another revision, nothing is done at all:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func delete(id: some RecordIDConvertible, ifRevision: Revision? = nil) {
        add(.delete(ifRevision: ifRevision), id.recordID)
    }

    /// Makes everything depend on the revision of a record that is not changed.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - revision: the one that the record must have; nil: there must be no record. Else nothing is done at all:
    ///     ``CRUDError/Code/revisionMismatch``.
    public mutating func check(id: some RecordIDConvertible, revision: Revision?) {
        add(.check(revision), id.recordID)
    }

    /// Includes records of another collection, which must live in the same backend.
    ///
    /// ```swift
    /// try await users.transaction { users in
    ///     try users.update(ada)
    ///     try users.collection("orders", of: Order.self) { orders in try orders.create(order) }
    /// }
    /// ```
    public mutating func collection<Other>(
        _ name: String, of type: Other.Type, _ operations: (inout Transaction<Other>) throws -> Void
    ) rethrows {
        var transaction = Transaction<Other>(collection: name)
        try operations(&transaction)
        self.operations += transaction.operations
    }

    private mutating func add(_ action: RecordOperation.Action, _ id: String) {
        operations.append(RecordOperation(action, id: id, in: collection))
    }

    private func item(of model: some Encodable) throws -> EncodedItem {
        try EncodedItem(ModelCoding.storedValue(of: model))
    }
}

extension Transaction where Model: Identifiable {
    /// Stores a new record. If there is one, nothing is done at all: ``CRUDError/Code/recordExists``.
    public mutating func create(_ model: Model) throws {
        try create(model, id: ModelCoding.recordID(of: model))
    }

    /// Replaces the record of a model. If there is none, or it has another revision, nothing is done at all:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func update(_ model: Model, ifRevision: Revision? = nil) throws {
        try update(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision)
    }

    /// Stores the record of a model, whether it is there or not.
    public mutating func upsert(_ model: Model, ifRevision: Revision? = nil) throws {
        try upsert(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision)
    }
}

extension Repository {
    /// Carries out several writes together: all of them, or none where one fails.
    ///
    /// ```swift
    /// try await accounts.transaction {
    ///     try $0.update(payer, ifRevision: payerRevision)
    ///     try $0.update(payee, ifRevision: payeeRevision)
    /// }
    /// ```
    ///
    /// - Parameter operations: notes what is to be done, at most as many operations as the daemon's limit `batch` (1000).
    ///   If it throws, nothing is sent.
    /// - Returns: for each operation the revision that it has given its record; nil for a deletion and a check.
    /// - Throws: the error of the first operation that failed, with its place in ``CRUDError/Details/index``: none was
    ///   carried out then. ``CRUDError/Code/unsupported`` where the collections live in several backends, or in one that
    ///   has no transactions.
    @discardableResult
    public nonisolated(nonsending) func transaction(_ operations: (inout Transaction<Model>) throws -> Void)
        async throws -> [Revision?]
    {
        var transaction = Transaction<Model>()
        try operations(&transaction)
        guard !transaction.operations.isEmpty else { return [] }
        return try await store.transaction(transaction.operations).map(\.revision)
    }
}
