import CRUDModel

/// Inserting or updating from any model.
extension Repository {
    /// Stores the members of a model: in a new record if there is none, else in the existing one.
    ///
    /// Any model is accepted, not only `Model`. Members that it does not have are kept, and so are those that are a
    /// plain nil; objects and dictionaries are merged, lists are replaced; a ``Field`` that is null removes its member.
    ///
    /// It is atomic: concurrent changes of other members are kept.
    ///
    /// - Returns: the whole new record.
    /// - Throws: ``CRUDError/Code/invalidParams`` if the model's `id` is neither ``RecordIDConvertible`` nor
    ///   `LosslessStringConvertible`; a `DecodingError` if the record, which has been stored, is not a `Model`.
    @discardableResult
    public func persist(_ model: some Encodable & Identifiable) async throws -> Model {
        try await persist(model, expiry: nil)
    }

    /// Stores the members of a model as ``persist(_:)->Model`` does, which keeps the record's expiry, and determines
    /// when the record expires.
    ///
    /// - Parameters:
    ///   - model: the model, which determines the record's id.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire any more.
    @discardableResult
    public func persist(_ model: some Encodable & Identifiable, expiresIn: Duration?) async throws -> Model {
        try await persist(model, expiry: Expiry(expiresIn: expiresIn))
    }

    private func persist(_ model: some Encodable & Identifiable, expiry: Expiry?) async throws -> Model {
        let patch = try EncodedItem(ModelCoding.storedValue(of: model))
        let id = try ModelCoding.recordID(of: model)
        return try await store.patch(
            id: id, with: patch, ifRevision: nil, upsert: true, expiry: expiry, as: Model.self
        ).item
    }

    /// Stores the members of several models, as ``persist(_:)->Model`` does.
    ///
    /// Each is atomic by itself; those of one record are stored in their order. If one fails, the others are stored
    /// nevertheless, unless the task is cancelled or a deadline passes. ``transaction(_:)`` is atomic as a whole.
    /// Nothing is stored if a model cannot be encoded, or if its `id` cannot be converted to a record's id.
    ///
    /// - Returns: the whole record after each model.
    /// - Throws: the first error, with the model's index in ``CRUDError/Details/index``; if a whole request failed,
    ///   that of its first model. A `DecodingError` if a record is not a `Model`: all have been stored.
    @discardableResult
    public func persist(_ models: [some Encodable & Identifiable]) async throws -> [Model] {
        let patches = try models.map { model in
            RecordOperation(
                .patch(try EncodedItem(ModelCoding.storedValue(of: model)), upsert: true),
                id: try ModelCoding.recordID(of: model))
        }
        var series = PatchSeries(patches, in: store)
        return try await zip(patches, series.execute()).map { try $1.decoded(of: $0.id, in: store.collection) }
    }
}
