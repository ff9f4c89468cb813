/// A ``CRUDRepository`` with queries, patches and batches, on which ``Repository`` is built.
///
/// ``RemoteRepository`` implements it, and so does `InMemoryRepository` of the product `CRUDInMemory`. They behave
/// alike: code that has an `any RecordStore` need not know which.
///
/// Besides the errors that a method names, all of them throw those of ``CRUDRepository``.
public protocol RecordStore: CRUDRepository {
    /// The name of the collection.
    var collection: String { get }

    /// How long a call may take unless ``CRUDClient/withDeadline(in:_:)`` says otherwise, and how long
    /// ``Repository/modify(id:_:)`` retries.
    var timeout: Duration { get }

    /// Stores a new record that expires: from that instant on it is not there, and soon after it is deleted.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the item.
    ///   - expiresIn: how long the record lives, to the millisecond, at most 100 years; nil: it does not expire.
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    func create<Item: Encodable>(id: String, item: Item, expiresIn: Duration?) async throws -> Revision

    /// Replaces an existing record by one that expires.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the new item.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``; ``CRUDError/Code/unsupported`` if the backend cannot
    ///   expire records.
    @discardableResult
    func update<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision

    /// Stores a record that expires, whether it exists or not.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the new item.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case, also if it does not
    ///     exist.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the record's revision in ``CRUDError/Details/revision``, nil
    ///   if there is no record; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    func upsert<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision

    /// Stores a record, if it has the expected revision.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the new item.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case, also if it does not
    ///     exist.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/revisionMismatch``, with the record's revision in
    ///   ``CRUDError/Details/revision``; nil if there is no record.
    @discardableResult
    func upsert<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision

    /// Applies a JSON Merge Patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) to a record, atomically: a
    /// member that the patch lacks is kept, null removes it, a value sets it; objects are merged, arrays are replaced.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - patch: the patch.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - upsert: whether a missing record starts as `{}`.
    ///   - type: the type of the patched item.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``, unless it is an upsert; ``CRUDError/Code/revisionMismatch``, with
    ///   the record's revision in ``CRUDError/Details/revision``, nil if there is no record; a `DecodingError` if the
    ///   patched item, which has been stored, is not an `Item`.
    func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, as type: Item.Type
    ) async throws -> Versioned<Item>

    /// Applies a JSON Merge Patch as ``patch(id:with:ifRevision:upsert:as:)`` does, and determines when the record
    /// expires.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - patch: the patch.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - upsert: whether a missing record starts as `{}`.
    ///   - expiry: nil: as before.
    ///   - type: the type of the patched item.
    /// - Throws: ``CRUDError/Code/unsupported`` if the backend cannot expire records; otherwise the same.
    func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item>

    /// Applies a JSON Merge Patch, if there is one, and then operations on single members, atomically.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - patch: the merge patch; nil: none.
    ///   - operations: what is applied to the members of what the patch has made of the item.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - upsert: whether a missing record starts as `{}`.
    ///   - expiry: nil: as before.
    ///   - type: the type of the patched item.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/unsupported`` if a member has another type, or the format cannot represent what it
    ///   becomes, with the member in ``CRUDError/Details/path``; ``CRUDError/Code/invalidParams`` if a path occurs
    ///   twice or lies within another; otherwise as ``patch(id:with:ifRevision:upsert:expiry:as:)``.
    func patch<Item: Decodable>(
        id: String, with patch: EncodedItem?, applying operations: FieldOperations, ifRevision: Revision?,
        upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item>

    /// Determines when a record expires, and changes nothing else. Its item is neither read nor sent.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - expiry: when it expires from now on.
    ///   - ifRevision: the record is changed only if this is its revision; nil: in any case.
    /// - Returns: the record's new revision: it is a change like any other.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the record's revision in
    ///   ``CRUDError/Details/revision``; ``CRUDError/Code/unsupported`` if the backend cannot expire records.
    @discardableResult
    func touch(id: String, expiry: Expiry, ifRevision: Revision?) async throws -> Revision

    /// Reads one page of the records that a query selects.
    ///
    /// - Returns: at most ``RecordQuery/limit`` records, and where the next page begins.
    /// - Throws: ``CRUDError/Code/invalidQuery`` for an invalid filter, or a cursor of another query;
    ///   ``CRUDError/Code/limitExceeded`` for a limit or a filter that is too large; a `DecodingError` if an item is
    ///   not an `Item`.
    func query<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item>

    /// Reads one page of changes, and waits until there are any.
    ///
    /// `changes(after:in:fields:)` reads page after page.
    ///
    /// - Throws: ``CRUDError/Code/cursorExpired`` if deletions since the cursor are no longer remembered, as where the
    ///   collection was dropped, or moved to a backend that keeps no changes: begin again at ``Cursor/start``;
    ///   ``CRUDError/Code/invalidQuery`` for an invalid filter or cursor; ``CRUDError/Code/unsupported`` if the
    ///   collection does not remember its changes.
    func changes(_ query: ChangeQuery) async throws -> ChangePage

    /// Counts the selected records. One whose stored bytes cannot be decoded is counted if there is no filter.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``.
    func count(_ selection: RecordSelection) async throws -> Int

    /// Deletes the selected records.
    ///
    /// Each deletion is atomic, all of them together are not: records that are stored meanwhile may or may not be
    /// deleted. One whose stored bytes cannot be decoded is deleted if there is no filter.
    ///
    /// - Parameter selection: every record only if it is ``RecordSelection/all``. One with an empty prefix, or with a
    ///   filter that names no property, is refused: most likely it was meant to select less.
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/invalidParams`` for such a selection; ``CRUDError/Code/invalidQuery``;
    ///   ``CRUDError/Code/outcomeUnknown`` if it was interrupted.
    @discardableResult
    func deleteMatching(_ selection: RecordSelection) async throws -> Int

    /// Executes several operations in one round trip. Each is atomic by itself; they run in order and see each other's
    /// effects.
    ///
    /// - Parameter operations: at most as many as the daemon's limit `batch` (1000).
    /// - Returns: the outcomes, in the order of the operations.
    /// - Throws: ``CRUDError/Code/invalidParams``, with ``CRUDError/Details/index``, for a malformed operation: nothing
    ///   was applied.
    @discardableResult
    func batch(_ operations: [RecordOperation]) async throws -> [Result<RecordOutcome, CRUDError>]

    /// Executes several operations atomically.
    ///
    /// - Parameter operations: at most as many as the daemon's limit `batch` (1000). All collections must belong to one
    ///   backend.
    /// - Returns: the outcomes, in the order of the operations.
    /// - Throws: the error of the first operation that failed, with its index in ``CRUDError/Details/index``: nothing
    ///   was applied. ``CRUDError/Code/unsupported`` if the collections belong to several backends, or to one
    ///   that has no transactions.
    @discardableResult
    func transaction(_ operations: [RecordOperation]) async throws -> [RecordOutcome]
}

extension RecordStore {
    @discardableResult
    public func upsert<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await upsert(id: id, item: item, ifRevision: nil)
    }

    /// Applies a JSON Merge Patch to an existing record, atomically.
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
    ///   - value: any Encodable value: a member that its encoding lacks is kept, null removes it.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - type: the type of the patched item.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``; a `DecodingError` if the patched item, which has been stored,
    ///   is not an `Item`.
    @discardableResult
    public func patch<Patch: Encodable, Item: Decodable>(
        id: String, with value: Patch, ifRevision: Revision? = nil, as type: Item.Type = Item.self
    ) async throws -> Item {
        try await patch(id: id, with: EncodedItem(value), ifRevision: ifRevision, upsert: false, as: type).item
    }

    /// Applies operations to single members of an existing record, atomically.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - operations: the operations.
    ///   - ifRevision: the record is patched only if this is its revision; nil: in any case.
    ///   - type: the type of the patched item.
    /// - Returns: the new record.
    /// - Throws: as ``patch(id:with:applying:ifRevision:upsert:expiry:as:)``.
    @discardableResult
    public func patch<Item: Decodable>(
        id: String, applying operations: FieldOperations, ifRevision: Revision? = nil, as type: Item.Type = Item.self
    ) async throws -> Item {
        try await patch(
            id: id, with: nil, applying: operations, ifRevision: ifRevision, upsert: false, expiry: nil, as: type
        ).item
    }
}

extension RecordStore {
    /// 30 seconds.
    public var timeout: Duration { .seconds(30) }
}
