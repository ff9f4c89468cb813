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

    /// Stores the members of several models, one after another, as ``persist(_:)->Model`` does.
    ///
    /// Each is atomic by itself. If one fails, the others are stored nevertheless; ``transaction(_:)`` is atomic as a
    /// whole.
    ///
    /// - Returns: the whole record after each model.
    /// - Throws: the first error, with the model's index in ``CRUDError/Details/index``.
    @discardableResult
    public func persist(_ models: [some Encodable & Identifiable]) async throws -> [Model] {
        let operations = try models.map { model in
            RecordOperation(
                .patch(try EncodedItem(ModelCoding.storedValue(of: model)), upsert: true),
                id: try ModelCoding.recordID(of: model))
        }
        var persisted: [Model] = []
        var firstError: CRUDError?
        for range in operations.batches {
            for (index, result) in zip(range, try await store.batch(Array(operations[range]))) {
                switch result {
                case .success(let outcome):
                    guard let item = outcome.item else { throw CRUDError.malformed(.batch) }
                    persisted.append(try item.decoded())
                case .failure(var error):
                    error.details.index = index
                    firstError = firstError ?? error
                }
            }
        }
        if let firstError { throw firstError }
        return persisted
    }
}

extension [RecordOperation] {
    /// The operations, divided so that each part fits into a request, and its results into a reply.
    fileprivate var batches: [Range<Int>] {
        var batches: [Range<Int>] = []
        var (start, size) = (0, 0)
        for (index, operation) in enumerated() {
            if index - start == 256 || size > 1 << 20 {
                batches.append(start..<index)
                (start, size) = (index, 0)
            }
            if case .patch(let patch, _, _) = operation.action { size += patch.bytes.count }
        }
        return isEmpty ? [] : batches + [start..<count]
    }
}
