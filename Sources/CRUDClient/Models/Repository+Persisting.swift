import CRUDModel

/// Inserting or updating from any model.
extension Repository {
    /// Stores what a model carries: a new record where there is none, else the members that it carries into the one that
    /// is there.
    ///
    /// Any model will do, not only `Model`. Members that it does not carry stay as they are, and so does one that is a
    /// plain nil; objects and dictionaries merge, lists are replaced; a ``Field`` that is null removes its member.
    ///
    /// It is atomic: what others store in the same record meanwhile is kept.
    ///
    /// - Returns: the whole record as it is now.
    /// - Throws: ``CRUDError/Code/invalidParams`` where the model's `id` is neither ``RecordIDConvertible`` nor
    ///   `LosslessStringConvertible`; a `DecodingError` where the record, which is stored then, is no `Model`.
    @discardableResult
    public func persist(_ model: some Encodable & Identifiable) async throws -> Model {
        let patch = try EncodedItem(ModelCoding.storedValue(of: model))
        let id = try ModelCoding.recordID(of: model)
        return try await store.patch(id: id, with: patch, ifRevision: nil, upsert: true, as: Model.self).item
    }

    /// Stores what several models carry, one after the other, as ``persist(_:)->Model`` does each of them; two that feed one
    /// record merge into it in their order.
    ///
    /// Each is atomic by itself. Where one fails, the others are stored nevertheless; for all or none there is
    /// ``transaction(_:)``.
    ///
    /// - Returns: the whole records as they are after each model.
    /// - Throws: the first error, with the model's place in ``CRUDError/Details/index``.
    @discardableResult
    public func persist(_ models: [some Encodable & Identifiable]) async throws -> [Model] {
        let operations = try models.map { model in
            RecordOperation(
                .patch(try EncodedItem(ModelCoding.storedValue(of: model)), upsert: true),
                id: try ModelCoding.recordID(of: model))
        }
        var persisted: [Model] = []
        var firstError: CRUDError?
        for run in operations.runs {
            for (index, result) in zip(run, try await store.batch(Array(operations[run]))) {
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
    /// The operations in runs that each fit into a request, and their answers into a reply.
    fileprivate var runs: [Range<Int>] {
        var runs: [Range<Int>] = []
        var (start, size) = (0, 0)
        for (index, operation) in enumerated() {
            if index - start == 256 || size > 1 << 20 {
                runs.append(start..<index)
                (start, size) = (index, 0)
            }
            if case .patch(let patch, _, _) = operation.action { size += patch.bytes.count }
        }
        return isEmpty ? [] : runs + [start..<count]
    }
}
