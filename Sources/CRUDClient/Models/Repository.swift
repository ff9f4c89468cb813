import CRUDModel

/// The records of one collection as values of one type: what most applications work with.
///
/// ```swift
/// let users = client.repository("users", of: User.self)
/// try await users.create(User(id: "ada", name: "Ada", age: 36))
/// let adults = try await users.fetch { $0.age >= 18 }
/// try await users.modify(id: "ada") { $0.age += 1 }
/// ```
///
/// It stands on a ``RecordStore`` and adds the type: the daemon's, or in a unit test `InMemoryRepository`. To make one
/// costs nothing, and any number of tasks may use it.
///
/// A model that is `Identifiable` or ``Persistable`` knows its record's id; for another one every method that stores has
/// a form with an `id`.
///
/// Beside the errors that a method names, all of them throw what ``CRUDRepository`` says.
public struct Repository<Model: Codable & Sendable>: Sendable {
    /// Where the records are.
    public let store: any RecordStore

    public init(_ store: any RecordStore) {
        self.store = store
    }

    // MARK: Reading

    /// Reads a record.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` where the item is no `Model`.
    public func read(id: some RecordIDConvertible) async throws -> Model {
        try await store.read(id: id.recordID)
    }

    /// Reads a record with its revision, which makes a later write conditional.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` where the item is no `Model`.
    public func readVersioned(id: some RecordIDConvertible) async throws -> Versioned<Model> {
        try await store.readVersioned(id: id.recordID, as: Model.self)
    }

    /// Reads several records.
    ///
    /// - Parameter ids: at most as many as the daemon's limit `batch` (1000).
    /// - Returns: the records that are there, in the order of `ids`; an id that is given twice is read once.
    /// - Throws: a `DecodingError` where an item is no `Model`.
    public func read(ids: [some RecordIDConvertible]) async throws -> [Model] {
        try await store.read(ids: ids.map(\.recordID))
    }

    /// Tells whether there is a record.
    public func exists(id: some RecordIDConvertible) async throws -> Bool {
        try await store.exists(id: id.recordID)
    }

    // MARK: Writing

    /// Stores a new record under an id.
    ///
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``.
    @discardableResult
    public func create(_ model: Model, id: some RecordIDConvertible) async throws -> Revision {
        try await store.create(id: id.recordID, item: ModelCoding.storedValue(of: model))
    }

    /// Replaces the record with an id. Of what was stored nothing stays.
    ///
    /// - Parameters:
    ///   - model: what is stored from now on.
    ///   - id: the record's id.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``.
    @discardableResult
    public func update(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil
    ) async throws -> Revision {
        try await store.update(id: id.recordID, item: ModelCoding.storedValue(of: model), ifRevision: ifRevision)
    }

    /// Stores a record under an id, whether it is there or not. Of what was stored nothing stays.
    ///
    /// - Parameters:
    ///   - model: what is stored from now on.
    ///   - id: the record's id.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is, and it need not be there.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the revision that the record has in
    ///   ``CRUDError/Details/revision``, nil there if there is no record.
    @discardableResult
    public func upsert(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil
    ) async throws -> Revision {
        try await store.upsert(id: id.recordID, item: ModelCoding.storedValue(of: model), ifRevision: ifRevision)
    }

    /// Deletes a record.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - ifRevision: the record is deleted only if this is its revision; nil: whatever it is.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``.
    public func delete(id: some RecordIDConvertible, ifRevision: Revision? = nil) async throws {
        try await store.delete(id: id.recordID, ifRevision: ifRevision)
    }

    /// Changes some members of a record, atomically: those that the coding of `change` leaves out stay as they are, null
    /// removes one, a value sets it. A type with ``Field`` members says all three.
    ///
    /// - Returns: the record as it is now.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``; a `DecodingError` where the record, which is stored then, is no
    ///   `Model`.
    @discardableResult
    public func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil
    ) async throws -> Model {
        try await store.patch(id: id.recordID, with: change, ifRevision: ifRevision)
    }
}

/// Models that know their record's id.
///
/// Each method throws ``CRUDError/Code/invalidParams`` where the `id` is neither ``RecordIDConvertible`` nor
/// `LosslessStringConvertible`.
extension Repository where Model: Identifiable {
    /// Stores a new record.
    ///
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``.
    @discardableResult
    public func create(_ model: Model) async throws -> Revision {
        try await create(model, id: ModelCoding.recordID(of: model))
    }

    /// Replaces the record of a model. Of what was stored nothing stays.
    ///
    /// - Parameters:
    ///   - model: what is stored from now on.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``.
    @discardableResult
    public func update(_ model: Model, ifRevision: Revision? = nil) async throws -> Revision {
        try await update(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision)
    }

    /// Stores the record of a model, whether it is there or not. Of what was stored nothing stays; ``persist(_:)->Model``
    /// keeps what the model does not carry.
    ///
    /// - Parameters:
    ///   - model: what is stored from now on.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is, and it need not be there.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the revision that the record has in
    ///   ``CRUDError/Details/revision``, nil there if there is no record.
    @discardableResult
    public func upsert(_ model: Model, ifRevision: Revision? = nil) async throws -> Revision {
        try await upsert(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision)
    }
}

extension CRUDClient {
    /// The records of the collection `name` as values of one type.
    ///
    /// Nothing is sent yet: a collection that the daemon does not know shows with the first call.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    ///   - type: the model.
    public func repository<Model>(_ name: String, of type: Model.Type) -> Repository<Model> {
        Repository(repository(name))
    }
}
