import CRUDModel

/// The operations of ``Repository/transaction(_:)``, which are executed atomically.
///
/// Its methods collect operations; they do not change records yet. They throw only if a model cannot be encoded, or if
/// its `id` cannot be converted to a record's id.
public struct Transaction<Model: Codable & Sendable> {
    /// In the order in which they are executed.
    private(set) var operations: [RecordOperation] = []
    /// The error of the first id that is none of the model's; the transaction throws it.
    private var failure: CRUDError?
    private let collection: String?

    init(collection: String? = nil) {
        self.collection = collection
    }

    /// Stores a new record under an id. If it exists, the transaction fails: ``CRUDError/Code/recordExists``.
    public mutating func create(_ model: Model, id: some RecordIDConvertible, expiresIn: Duration? = nil) throws {
        add(.create(try item(of: model)), id: id, Expiry(expiresIn: expiresIn))
    }

    /// Replaces the record with an id. If there is none, or it has another revision, the transaction fails:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func update(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) throws {
        add(.update(try item(of: model), ifRevision: ifRevision), id: id, Expiry(expiresIn: expiresIn))
    }

    /// Stores a record under an id, whether it exists or not.
    public mutating func upsert(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) throws {
        add(.upsert(try item(of: model), ifRevision: ifRevision), id: id, Expiry(expiresIn: expiresIn))
    }

    /// Changes some members of a record, as ``Repository/patch(id:with:ifRevision:)`` does. If there is none, or it has
    /// another revision, the transaction fails: ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil
    ) throws {
        add(.patch(try EncodedItem(change), ifRevision: ifRevision), id: id)
    }

    /// Changes some members of a record, and determines when it expires, as
    /// ``Repository/patch(id:with:ifRevision:expiresIn:)`` does.
    public mutating func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil, expiresIn: Duration?
    ) throws {
        add(.patch(try EncodedItem(change), ifRevision: ifRevision), id: id, Expiry(expiresIn: expiresIn))
    }

    /// Stores the members of a model, as ``Repository/persist(_:)->Model`` does.
    public mutating func persist(_ model: some Encodable & Identifiable) throws {
        add(.patch(try item(of: model), upsert: true), try ModelCoding.recordID(of: model))
    }

    /// Stores the members of a model, and determines when the record expires, as
    /// ``Repository/persist(_:expiresIn:)`` does.
    public mutating func persist(_ model: some Encodable & Identifiable, expiresIn: Duration?) throws {
        let expiry = Expiry(expiresIn: expiresIn)
        add(.patch(try item(of: model), upsert: true), try ModelCoding.recordID(of: model), expiry)
    }

    /// Stores the members of several models, in their order.
    public mutating func persist(_ models: [some Encodable & Identifiable]) throws {
        for model in models { try persist(model) }
    }

    /// Deletes a record. If there is none, or it has another revision, the transaction fails:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func delete(id: some RecordIDConvertible, ifRevision: Revision? = nil) {
        add(.delete(ifRevision: ifRevision), id: id)
    }

    /// Makes the transaction depend on the revision of a record that is not changed.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - revision: the one that the record must have; nil: there must be no record. Else the transaction fails:
    ///     ``CRUDError/Code/revisionMismatch``, ``CRUDError/Code/recordNotFound``.
    public mutating func check(id: some RecordIDConvertible, revision: Revision?) {
        add(.check(revision), id: id)
    }

    /// Adds operations on another collection, which must belong to the same backend.
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
        failure = failure ?? transaction.failure.map { $0.at(self.operations.count + ($0.details.index ?? 0)) }
        self.operations += transaction.operations
    }

    /// - Throws: the error of the first id that was none of the model's.
    func checkIDs() throws {
        if let failure { throw failure }
    }

    mutating func add(_ action: RecordOperation.Action, id: some RecordIDConvertible, _ expiry: Expiry? = nil) {
        do throws(CRUDError) {
            add(action, try ModelID.text(id, of: Model.self), expiry)
        } catch {
            failure = failure ?? error.at(operations.count)
        }
    }

    private mutating func add(_ action: RecordOperation.Action, _ id: String, _ expiry: Expiry? = nil) {
        operations.append(RecordOperation(action, id: id, in: collection, expiry: expiry))
    }

    private func item(of model: some Encodable) throws -> EncodedItem {
        try EncodedItem(ModelCoding.storedValue(of: model))
    }
}

extension Transaction where Model: Identifiable {
    /// Stores a new record. If it exists, the transaction fails: ``CRUDError/Code/recordExists``.
    public mutating func create(_ model: Model, expiresIn: Duration? = nil) throws {
        try create(model, id: ModelCoding.recordID(of: model), expiresIn: expiresIn)
    }

    /// Replaces the record of a model. If there is none, or it has another revision, the transaction fails:
    /// ``CRUDError/Code/recordNotFound``, ``CRUDError/Code/revisionMismatch``.
    public mutating func update(_ model: Model, ifRevision: Revision? = nil, expiresIn: Duration? = nil) throws {
        try update(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision, expiresIn: expiresIn)
    }

    /// Stores the record of a model, whether it exists or not.
    public mutating func upsert(_ model: Model, ifRevision: Revision? = nil, expiresIn: Duration? = nil) throws {
        try upsert(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision, expiresIn: expiresIn)
    }
}

extension Repository {
    /// Executes several writes atomically.
    ///
    /// ```swift
    /// try await accounts.transaction {
    ///     try $0.update(payer, ifRevision: payerRevision)
    ///     try $0.update(payee, ifRevision: payeeRevision)
    /// }
    /// ```
    ///
    /// - Parameter operations: adds the operations, at most as many as the daemon's limit `batch` (1000). If it throws,
    ///   nothing is sent.
    /// - Returns: for each operation the new revision of its record; nil for a deletion and a check.
    /// - Throws: the error of the first operation that failed, with its index in ``CRUDError/Details/index``: nothing
    ///   was applied. ``CRUDError/Code/unsupported`` if the collections belong to several backends, or to one
    ///   that has no transactions.
    @discardableResult
    public nonisolated(nonsending) func transaction(_ operations: (inout Transaction<Model>) throws -> Void)
        async throws -> [Revision?]
    {
        var transaction = Transaction<Model>()
        try operations(&transaction)
        try transaction.checkIDs()
        guard !transaction.operations.isEmpty else { return [] }
        return try await store.transaction(transaction.operations).map(\.revision)
    }
}
