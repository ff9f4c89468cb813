extension CRUDRepository {
    /// Reads a record's item.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` if the item is not an `Item`.
    public func read<Item: Decodable>(id: String, as type: Item.Type = Item.self) async throws -> Item {
        try await readVersioned(id: id, as: type).item
    }

    /// Reads the items of several records. Those whose stored bytes cannot be decoded are left out.
    ///
    /// - Parameters:
    ///   - ids: at most as many as the daemon's limit `batch` (1000).
    ///   - type: the type of the items.
    /// - Returns: the items of the records that exist, in the order of `ids`; a repeated id is read once.
    /// - Throws: a `DecodingError` if an item is not an `Item`.
    public func read<Item: Decodable>(ids: [String], as type: Item.Type = Item.self) async throws -> [Item] {
        try await readVersioned(ids: ids, as: type).map(\.item)
    }

    /// Replaces the item of an existing record, whatever its revision.
    ///
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``.
    @discardableResult
    public func update<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await update(id: id, item: item, ifRevision: nil)
    }

    /// Deletes an existing record, whatever its revision.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``.
    public func delete(id: String) async throws {
        try await delete(id: id, ifRevision: nil)
    }
}

// Default implementations, which a repository may replace by more efficient ones.
extension CRUDRepository {
    @discardableResult
    public func upsert<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        // Each write is atomic; between two of them others may create or delete the record.
        while true {
            do {
                return try await update(id: id, item: item)
            } catch let error as CRUDError where error.code == .recordNotFound {}
            do {
                return try await create(id: id, item: item)
            } catch let error as CRUDError where error.code == .recordExists {}
        }
    }

    public func exists(id: String) async throws -> Bool {
        do {
            _ = try await readVersioned(id: id, as: Ignored.self)
            return true
        } catch let error as CRUDError where error.code == .recordNotFound {
            return false
        }
    }

    public func readVersioned<Item: Decodable>(ids: [String], as type: Item.Type) async throws -> [Versioned<Item>] {
        var seen: Set<[UInt8]> = []
        var records: [Versioned<Item>] = []
        for id in ids where seen.insert(Array(id.utf8)).inserted {
            do {
                records.append(try await readVersioned(id: id, as: type))
            } catch let error as CRUDError where error.code == .recordNotFound {}
        }
        return records
    }
}
