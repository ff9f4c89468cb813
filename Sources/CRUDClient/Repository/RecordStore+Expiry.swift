import CRUDModel

// A store that wraps another one implements `batch` and `transaction` in any case, so that these need nothing more.

/// Writes with an expiry or with field operations, as batches of one operation.
extension RecordStore {
    @discardableResult
    public func create<Item: Encodable>(id: String, item: Item, expiresIn: Duration?) async throws -> Revision {
        try await write(.create(EncodedItem(item)), id, expiresIn.map(Expiry.after))
    }

    @discardableResult
    public func update<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await write(.update(EncodedItem(item), ifRevision: ifRevision), id, expiresIn.map(Expiry.after))
    }

    @discardableResult
    public func upsert<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await write(.upsert(EncodedItem(item), ifRevision: ifRevision), id, expiresIn.map(Expiry.after))
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await changed(.patch(patch, ifRevision: ifRevision, upsert: upsert), id, expiry)
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem?, applying operations: FieldOperations, ifRevision: Revision?,
        upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await changed(.apply(operations, patch: patch, ifRevision: ifRevision, upsert: upsert), id, expiry)
    }

    @discardableResult
    public func touch(id: String, expiry: Expiry, ifRevision: Revision?) async throws -> Revision {
        try await write(.touch(ifRevision: ifRevision), id, expiry)
    }

    private func changed<Item: Decodable>(
        _ action: RecordOperation.Action, _ id: String, _ expiry: Expiry?
    ) async throws -> Versioned<Item> {
        let outcome = try await execute(action, id, expiry)
        guard let item = outcome.item, let revision = outcome.revision else { throw CRUDError.malformed(.batch) }
        return Versioned(id: id, item: try item.decoded(of: id, in: collection), revision: revision)
    }

    private func write(_ action: RecordOperation.Action, _ id: String, _ expiry: Expiry?) async throws -> Revision {
        guard let revision = try await execute(action, id, expiry).revision else { throw CRUDError.malformed(.batch) }
        return revision
    }

    private func execute(
        _ action: RecordOperation.Action, _ id: String, _ expiry: Expiry?
    ) async throws -> RecordOutcome {
        let results = try await batch([RecordOperation(action, id: id, expiry: expiry)])
        guard let result = results.first else { throw CRUDError.malformed(.batch) }
        return try result.get()
    }
}

extension RecordStore {
    /// Applies a JSON Merge Patch to an existing record, and determines when the record expires.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - value: any Encodable value: a member that its encoding lacks is kept, null removes it.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire any more.
    ///   - type: the type of the patched item.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``;
    ///   ``CRUDError/Code/unsupported`` if the backend cannot expire records; a `DecodingError` if the patched item,
    ///   which has been stored, is not an `Item`.
    @discardableResult
    public func patch<Patch: Encodable, Item: Decodable>(
        id: String, with value: Patch, ifRevision: Revision? = nil, expiresIn: Duration?, as type: Item.Type = Item.self
    ) async throws -> Item {
        try await patch(
            id: id, with: EncodedItem(value), ifRevision: ifRevision, upsert: false,
            expiry: Expiry(expiresIn: expiresIn), as: type
        ).item
    }
}
