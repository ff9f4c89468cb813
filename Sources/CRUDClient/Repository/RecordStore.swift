/// A ``CRUDRepository`` that can also be asked: what ``Repository`` stands on.
///
/// ``RemoteRepository`` is one, and so is `InMemoryRepository` of the product `CRUDInMemory`. They behave alike; whoever
/// holds an `any RecordStore` cannot tell which it has.
///
/// Beside the errors that a method names, all of them throw what ``CRUDRepository`` says.
public protocol RecordStore: CRUDRepository {
    /// The name of the collection.
    var collection: String { get }

    /// Stores a record, if it still has the revision that is expected.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the whole item from now on.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is, and it need not be there.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the revision that the record has in
    ///   ``CRUDError/Details/revision``, nil there if there is no record.
    @discardableResult
    func upsert<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision

    /// Applies a JSON Merge Patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) to a record, atomically: a member
    /// that the patch lacks stays as it is, null removes it, a value sets it; objects merge, arrays are replaced.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - patch: the patch.
    ///   - ifRevision: the record is patched only if this is its revision; nil: whatever it is.
    ///   - upsert: whether a record that is not there starts as `{}`.
    ///   - type: what the patched item is read as.
    /// - Returns: the record as it is now.
    /// - Throws: ``CRUDError/Code/recordNotFound``, unless it is an upsert; ``CRUDError/Code/revisionMismatch``, with the
    ///   revision that the record has in ``CRUDError/Details/revision``, nil there if there is no record; a `DecodingError`
    ///   where the patched item, which is stored then, is no `Item`.
    func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, as type: Item.Type
    ) async throws -> Versioned<Item>

    /// Reads one page of the records that a query selects.
    ///
    /// - Returns: at most ``RecordQuery/limit`` records, and where the next page begins.
    /// - Throws: ``CRUDError/Code/invalidQuery`` for a filter that means nothing, or a cursor of another query;
    ///   ``CRUDError/Code/limitExceeded`` for a limit or a filter that is too large; a `DecodingError` where an item is no
    ///   `Item`.
    func query<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item>

    /// Counts the records that are selected.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``.
    func count(_ selection: RecordSelection) async throws -> Int

    /// Deletes the records that are selected.
    ///
    /// Each deletion is atomic, all of them together are not: records that others store meanwhile may or may not go.
    ///
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/invalidQuery``; ``CRUDError/Code/outcomeUnknown`` where it was cut short.
    @discardableResult
    func deleteMatching(_ selection: RecordSelection) async throws -> Int

    /// Carries out several operations in one round trip. Each is atomic by itself; they run in order and see each other.
    ///
    /// - Parameter operations: at most as many as the daemon's limit `batch` (1000).
    /// - Returns: the outcome of each, in their order.
    /// - Throws: ``CRUDError/Code/invalidParams``, with ``CRUDError/Details/index``, for a malformed operation: none was
    ///   carried out then.
    @discardableResult
    func batch(_ operations: [RecordOperation]) async throws -> [Result<RecordOutcome, CRUDError>]

    /// Carries out all of several operations or none.
    ///
    /// - Parameter operations: at most as many as the daemon's limit `batch` (1000). All collections must live in one
    ///   backend.
    /// - Returns: the outcome of each, in their order.
    /// - Throws: the error of the first operation that failed, with its place in ``CRUDError/Details/index``: none was
    ///   carried out then. ``CRUDError/Code/unsupported`` where the collections live in several backends, or in one that
    ///   has no transactions.
    @discardableResult
    func transaction(_ operations: [RecordOperation]) async throws -> [RecordOutcome]
}

extension RecordStore {
    @discardableResult
    public func upsert<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await upsert(id: id, item: item, ifRevision: nil)
    }

    /// Applies a JSON Merge Patch to a record that is there, atomically.
    ///
    /// ```swift
    /// struct Presence: Encodable {
    ///     @Field var isOnline: Bool? = nil
    ///     @Field var status: String? = nil
    /// }
    ///
    /// var change = Presence(isOnline: true)
    /// change.status = nil                                     // removes the member
    /// let user = try await users.patch(id: "ada", with: change, as: User.self)
    /// ```
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - value: any Encodable value: a member that its coding leaves out stays as it is, null removes it.
    ///   - ifRevision: the record is patched only if this is its revision; nil: whatever it is.
    ///   - type: what the patched item is read as.
    /// - Returns: the record as it is now.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``; a `DecodingError` where the patched item, which is stored then, is
    ///   no `Item`.
    @discardableResult
    public func patch<Patch: Encodable, Item: Decodable>(
        id: String, with value: Patch, ifRevision: Revision? = nil, as type: Item.Type = Item.self
    ) async throws -> Item {
        try await patch(id: id, with: EncodedItem(value), ifRevision: ifRevision, upsert: false, as: type).item
    }
}
