import CRUDModel

/// A transaction that reads before it writes: what the closure of
/// ``RecordDatabase/transaction(retryingConflicts:_:)`` is given.
///
/// What it has read is a condition of what it writes: the writes take effect together, if every record still has the
/// revision that was read, and those that were not there still are not. Writes are collected until the closure ends.
public final class DatabaseTransaction {
    private let store: (String) -> any RecordStore
    /// The revisions of the records that were read, in that order; nil: there was no record.
    private var read: [(id: String, collection: String, revision: Revision?)] = []
    /// The positions in `read`.
    private var positions: [RecordKey: Int] = [:]
    private var written: Set<RecordKey> = []
    private var operations: [RecordOperation] = []
    /// Whether a record has had two revisions, here or at the end.
    private(set) var hasConflict = false

    init(_ database: some RecordDatabase) {
        store = { database.repository($0) }
    }

    /// The records of a collection, as this transaction reads and writes them. All collections must belong to one
    /// backend.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    ///   - type: the model.
    public func collection<Model>(_ name: String, of type: Model.Type) -> TransactionCollection<Model> {
        TransactionCollection(transaction: self, name: name)
    }

    // MARK: The collections

    nonisolated(nonsending) func find<Model: Codable & Sendable>(
        _ id: String, in collection: String, as type: Model.Type
    ) async throws -> Versioned<Model>? {
        let key = RecordKey(id, collection)
        guard !written.contains(key) else {
            throw CRUDError(
                .invalidParams,
                "record \(quoted(id.utf8)) of collection \(quoted(collection.utf8)) was written in this transaction; "
                    + "read it before",
                details: CRUDError.Details(member: "id"))
        }
        do {
            let record = try await store(collection).readVersioned(id: id, as: type)
            try remember(record.revision, key, id, collection)
            return record
        } catch let error as CRUDError where error.code == .recordNotFound {
            try remember(nil, key, id, collection)
            return nil
        }
    }

    private func remember(_ revision: Revision?, _ key: RecordKey, _ id: String, _ collection: String) throws {
        guard let position = positions[key] else {
            positions[key] = read.count
            read.append((id, collection, revision))
            return
        }
        guard read[position].revision != revision else { return }
        hasConflict = true
        throw CRUDError.revisionMismatch(id.utf8, in: collection.utf8, current: revision?.text)
    }

    func add(_ new: [RecordOperation], in collection: String) {
        for operation in new {
            if case .check = operation.action { continue }
            written.insert(RecordKey(operation.id, operation.collection ?? collection))
        }
        operations += new
    }

    // MARK: The end

    /// Executes the writes, if what was read has not changed.
    nonisolated(nonsending) func commit() async throws {
        // One read is of one moment.
        guard !operations.isEmpty || read.count > 1, let first = operations.first?.collection ?? read.first?.collection
        else { return }
        let checks = read.map { RecordOperation(.check($0.revision), id: $0.id, in: $0.collection) }
        let all = checks + operations
        let store = store(first)
        do {
            // A record that is read and written has another revision afterwards, so that the checks fail then.
            if written.contains(where: { positions[$0] != nil }) {
                try await ConditionalWrite.send { _ = try await store.transaction(all) }
            } else {
                try await store.transaction(all)
            }
        } catch let error as CRUDError {
            guard let index = error.details.index else { throw error }
            guard index < checks.count else { throw error.at(index - checks.count) }
            guard [.revisionMismatch, .recordNotFound, .recordExists].contains(error.code) else { throw error }
            hasConflict = true
            let changed = checks[index]
            throw CRUDError.revisionMismatch(
                changed.id.utf8, in: (changed.collection ?? first).utf8, current: error.details.revision)
        }
    }
}

/// A record of a collection; texts are compared by bytes, as String's own equality takes canonically equivalent texts
/// for one.
private struct RecordKey: Hashable {
    private let id: [UInt8]
    private let collection: [UInt8]

    init(_ id: String, _ collection: String) {
        self.id = Array(id.utf8)
        self.collection = Array(collection.utf8)
    }
}

/// A collection within a ``DatabaseTransaction``.
///
/// Reads are executed at once; of records that the transaction has written before they are refused. The other methods
/// collect writes, which are executed together in their order when the transaction's closure has ended.
public struct TransactionCollection<Model: Codable & Sendable> {
    let transaction: DatabaseTransaction
    /// The name of the collection.
    public let name: String

    /// Reads a record.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` if the item is not a `Model`.
    public nonisolated(nonsending) func read(id: some RecordIDConvertible) async throws -> Model {
        guard let item = try await find(id: id) else {
            throw CRUDError.recordNotFound(id.recordID.utf8, in: name.utf8)
        }
        return item
    }

    /// Reads a record that need not be there.
    ///
    /// - Returns: nil if there is none; the transaction then depends on that.
    /// - Throws: a `DecodingError` if the item is not a `Model`.
    public nonisolated(nonsending) func find(id: some RecordIDConvertible) async throws -> Model? {
        try await transaction.find(ModelID.text(id, of: Model.self), in: name, as: Model.self)?.item
    }

    /// Adds any writes; see ``Transaction``.
    ///
    /// - Parameter operations: adds them.
    public func write(_ operations: (inout Transaction<Model>) throws -> Void) throws {
        var writes = Transaction<Model>(collection: name)
        try operations(&writes)
        try writes.checkIDs()
        transaction.add(writes.operations, in: name)
    }

    /// Stores a new record under an id; see ``Transaction/create(_:id:expiresIn:)``.
    public func create(_ model: Model, id: some RecordIDConvertible, expiresIn: Duration? = nil) throws {
        try write { try $0.create(model, id: id, expiresIn: expiresIn) }
    }

    /// Replaces the record with an id.
    public func update(_ model: Model, id: some RecordIDConvertible, expiresIn: Duration? = nil) throws {
        try write { try $0.update(model, id: id, expiresIn: expiresIn) }
    }

    /// Stores a record under an id, whether it exists or not.
    public func upsert(_ model: Model, id: some RecordIDConvertible, expiresIn: Duration? = nil) throws {
        try write { try $0.upsert(model, id: id, expiresIn: expiresIn) }
    }

    /// Deletes a record. If there is none the transaction fails: ``CRUDError/Code/recordNotFound``.
    public func delete(id: some RecordIDConvertible) throws {
        try write { $0.delete(id: id) }
    }
}

extension TransactionCollection where Model: Identifiable {
    /// Stores a new record. If it exists, the transaction fails: ``CRUDError/Code/recordExists``.
    public func create(_ model: Model, expiresIn: Duration? = nil) throws {
        try write { try $0.create(model, expiresIn: expiresIn) }
    }

    /// Replaces the record of a model. If there is none the transaction fails: ``CRUDError/Code/recordNotFound``.
    public func update(_ model: Model, expiresIn: Duration? = nil) throws {
        try write { try $0.update(model, expiresIn: expiresIn) }
    }

    /// Stores the record of a model, whether it exists or not.
    public func upsert(_ model: Model, expiresIn: Duration? = nil) throws {
        try write { try $0.upsert(model, expiresIn: expiresIn) }
    }
}

extension RecordDatabase {
    /// Executes a transaction that reads, decides and writes, atomically.
    ///
    /// ```swift
    /// try await database.transaction { transaction in
    ///     let accounts = transaction.collection("accounts", of: Account.self)
    ///     var (payer, payee) = (try await accounts.read(id: 1), try await accounts.read(id: 2))
    ///     guard payer.balance >= 10 else { throw Overdrawn() }
    ///     payer.balance -= 10
    ///     payee.balance += 10
    ///     try accounts.update(payer)
    ///     try accounts.update(payee)
    /// }
    /// ```
    ///
    /// The writes take effect together when `body` has returned, if no record that it has read has changed since. If
    /// one has, `body` is called again, after a random pause. If `body` throws, nothing is written. Without writes the
    /// transaction is checked as well, so that several reads are of one moment.
    ///
    /// If the reply is lost and the transaction writes a record that it has read, it is sent again with the same
    /// conditions: if that succeeds, it has taken effect once.
    ///
    /// - Parameters:
    ///   - retryingConflicts: whether `body` is called again after a conflict; if not, that is
    ///     ``CRUDError/Code/revisionMismatch``.
    ///   - body: reads and writes, in the caller's isolation. It should have no other effects. At most as many records
    ///     as the daemon's limit `batch` (1000), those that are read and the writes together.
    /// - Returns: what `body` has returned.
    /// - Throws: ``CRUDError/Code/timedOut`` if there were conflicts until the time of a call was over
    ///   (``RecordStore/timeout``, or an earlier deadline of ``CRUDClient/withDeadline(in:_:)``); the error of the
    ///   first write that failed, with its index in ``CRUDError/Details/index``: nothing was applied;
    ///   ``CRUDError/Code/outcomeUnknown``; ``CRUDError/Code/unsupported`` if the collections belong to several
    ///   backends, or to one that has no transactions; the errors of `body`.
    @discardableResult
    public nonisolated(nonsending) func transaction<Value>(
        retryingConflicts: Bool = true, _ body: nonisolated(nonsending) (DatabaseTransaction) async throws -> Value
    ) async throws -> Value {
        try await CRUDClient.withDeadline(in: repository("").timeout) {
            var pauses = ConflictPauses()
            while true {
                let transaction = DatabaseTransaction(self)
                do {
                    let value = try await body(transaction)
                    try await transaction.commit()
                    return value
                } catch {
                    guard retryingConflicts, transaction.hasConflict else { throw error }
                }
                try await pauses.wait("the records")
            }
        }
    }
}
