import CRUDModel

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a write does to the expiry of its record, in a ``RecordOperation`` and in ``RecordStore``'s patches.
public enum Expiry: Sendable, Hashable {
    /// The record does not expire.
    case never
    /// The record expires that long after the write, by the clock of the store. To the millisecond, above zero, at most
    /// 100 years.
    case after(Duration)
    /// The record expires at that instant, as one that was read elsewhere (``Versioned/expiresAt``). To the
    /// millisecond, after 1970-01-01, before the year 10000. One that has passed gives a record that is not there.
    case at(Date)

    /// - Parameter duration: nil: never.
    init(expiresIn duration: Duration?) {
        self = duration.map(Self.after) ?? .never
    }

    /// The instant of ``at(_:)`` in milliseconds since 1970-01-01 UTC; 0, which is none, if it is not one.
    package static func milliseconds(_ instant: Date) -> Int {
        Int(exactly: (instant.timeIntervalSince1970 * 1000).rounded()) ?? 0
    }
}

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
