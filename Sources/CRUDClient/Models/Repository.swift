import CRUDModel

/// The records of one collection as values of one type.
///
/// ```swift
/// let users = client.repository("users", of: User.self)
/// try await users.create(User(id: "ada", name: "Ada", age: 36))
/// let adults = try await users.fetch { $0.age >= 18 }
/// try await users.modify(id: "ada") { $0.age += 1 }
/// ```
///
/// It is a typed layer over a ``RecordStore``: the daemon's, or in a unit test `InMemoryRepository`. Creating one costs
/// nothing, and any number of tasks may use it.
///
/// A model that is `Identifiable` or ``Persistable`` determines its record's id; for others, every method that stores
/// has a variant with an `id`.
///
/// The ids of an `Identifiable` model have its type. An `id` of another type is taken for the equal value of that type,
/// so that a `UUID` and its `uuidString` are one id; what is none, "abc" for a model with numbers as ids, throws
/// ``CRUDError/Code/invalidParams``. A ``Persistable`` model accepts any text.
///
/// Besides the errors that a method names, all of them throw those of ``CRUDRepository``.
public struct Repository<Model: Codable & Sendable>: Sendable {
    /// The store that has the records.
    public let store: any RecordStore
    /// What is told of records that are not a `Model`; nil: they are errors.
    var report: (@Sendable (UndecodableRecord) -> Void)?

    public init(_ store: any RecordStore) {
        self.store = store
    }

    // MARK: Reading

    /// Reads a record.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` if the item is not a `Model`.
    public func read(id: some RecordIDConvertible) async throws -> Model {
        try await store.read(id: recordID(id))
    }

    /// Reads a record with its revision, which makes a later write conditional.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` if the item is not a `Model`.
    public func readVersioned(id: some RecordIDConvertible) async throws -> Versioned<Model> {
        try await store.readVersioned(id: recordID(id), as: Model.self)
    }

    /// Reads several records. Those whose stored bytes cannot be decoded are left out.
    ///
    /// - Parameter ids: any number. More than the daemon's limit `batch` (1000) are read in parts, which need not be of
    ///   one moment.
    /// - Returns: the records that exist, in the order of `ids`; a repeated id is read once.
    /// - Throws: a `DecodingError` if an item is not a `Model`, unless that is reported; see
    ///   ``reportingUndecodable(_:)``.
    public func read(ids: [some RecordIDConvertible]) async throws -> [Model] {
        try await store.readVersioned(ids: ids.map { try recordID($0) }, as: DecodedItem<Model>.self)
            .compactMap { try $0.decoded(in: store.collection, report)?.item }
    }

    /// Returns whether a record exists.
    public func exists(id: some RecordIDConvertible) async throws -> Bool {
        try await store.exists(id: recordID(id))
    }

    // MARK: Writing

    /// Stores a new record under an id.
    ///
    /// - Parameters:
    ///   - model: the contents of the record.
    ///   - id: the record's id.
    ///   - expiresIn: how long the record lives, to the millisecond, at most 100 years; nil: it does not expire.
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    public func create(
        _ model: Model, id: some RecordIDConvertible, expiresIn: Duration? = nil
    ) async throws -> Revision {
        try await store.create(id: recordID(id), item: ModelCoding.storedValue(of: model), expiresIn: expiresIn)
    }

    /// Replaces the record with an id. Nothing of the previous item is kept.
    ///
    /// - Parameters:
    ///   - model: the new contents of the record.
    ///   - id: the record's id.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``.
    @discardableResult
    public func update(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) async throws -> Revision {
        let item = try ModelCoding.storedValue(of: model)
        return try await store.update(id: recordID(id), item: item, ifRevision: ifRevision, expiresIn: expiresIn)
    }

    /// Stores a record under an id, whether it exists or not. Nothing of the previous item is kept.
    ///
    /// - Parameters:
    ///   - model: the new contents of the record.
    ///   - id: the record's id.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case, also if it does not
    ///     exist.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the record's revision in
    ///   ``CRUDError/Details/revision``; nil if there is no record.
    @discardableResult
    public func upsert(
        _ model: Model, id: some RecordIDConvertible, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) async throws -> Revision {
        let item = try ModelCoding.storedValue(of: model)
        return try await store.upsert(id: recordID(id), item: item, ifRevision: ifRevision, expiresIn: expiresIn)
    }

    /// Deletes a record.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - ifRevision: the record is deleted only if this is its revision; nil: in any case.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``.
    public func delete(id: some RecordIDConvertible, ifRevision: Revision? = nil) async throws {
        try await store.delete(id: recordID(id), ifRevision: ifRevision)
    }

    /// Changes some members of a record, atomically: those that the encoding of `change` lacks are kept, null removes a
    /// member, a value sets it. A type with ``Field`` members can express all three.
    ///
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``; a `DecodingError` if the record, which has been stored, is not
    ///   a `Model`.
    @discardableResult
    public func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil
    ) async throws -> Model {
        try await store.patch(id: recordID(id), with: change, ifRevision: ifRevision)
    }

    /// Changes some members of a record as ``patch(id:with:ifRevision:)`` does, which keeps its expiry, and determines
    /// when it expires.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - change: what is encoded to the patch.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire any more.
    @discardableResult
    public func patch(
        id: some RecordIDConvertible, with change: some Encodable, ifRevision: Revision? = nil, expiresIn: Duration?
    ) async throws -> Model {
        try await store.patch(id: recordID(id), with: change, ifRevision: ifRevision, expiresIn: expiresIn)
    }
}

/// Models that determine their record's id.
///
/// Each method throws ``CRUDError/Code/invalidParams`` if the `id` is neither ``RecordIDConvertible`` nor
/// `LosslessStringConvertible`.
extension Repository {
    /// Determines when a record expires, and changes nothing else: its item is neither read nor sent.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - expiresIn: how long the record lives from now on, to the millisecond, at most 100 years; nil: it does not
    ///     expire any more.
    ///   - ifRevision: the record is changed only if this is its revision; nil: in any case.
    /// - Returns: the record's new revision: it is a change like any other.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``;
    ///   ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    public func touch(
        id: some RecordIDConvertible, expiresIn: Duration?, ifRevision: Revision? = nil
    ) async throws -> Revision {
        try await store.touch(id: recordID(id), expiry: Expiry(expiresIn: expiresIn), ifRevision: ifRevision)
    }
}

extension Repository where Model: Identifiable {
    /// Stores a new record.
    ///
    /// - Parameters:
    ///   - model: the contents of the record.
    ///   - expiresIn: how long the record lives, to the millisecond, at most 100 years; nil: it does not expire.
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    public func create(_ model: Model, expiresIn: Duration? = nil) async throws -> Revision {
        try await create(model, id: ModelCoding.recordID(of: model), expiresIn: expiresIn)
    }

    /// Replaces the record of a model. Nothing of the previous item is kept.
    ///
    /// - Parameters:
    ///   - model: the new contents of the record.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``.
    @discardableResult
    public func update(
        _ model: Model, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) async throws -> Revision {
        try await update(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision, expiresIn: expiresIn)
    }

    /// Stores the record of a model, whether it exists or not. Of what was stored nothing stays; ``persist(_:)->Model``
    /// keeps members that the model does not have.
    ///
    /// - Parameters:
    ///   - model: the new contents of the record.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case, also if it does not
    ///     exist.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the record's revision in
    ///   ``CRUDError/Details/revision``; nil if there is no record.
    @discardableResult
    public func upsert(
        _ model: Model, ifRevision: Revision? = nil, expiresIn: Duration? = nil
    ) async throws -> Revision {
        try await upsert(model, id: ModelCoding.recordID(of: model), ifRevision: ifRevision, expiresIn: expiresIn)
    }
}
