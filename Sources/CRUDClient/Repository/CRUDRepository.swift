/// Records of one collection, each an item of any Codable type under an id: what an application that stores something
/// depends on, whoever keeps it.
///
/// ```swift
/// struct Registration {
///     let clients: any CRUDRepository
///
///     func register(_ client: Client) async throws {
///         try await clients.create(id: client.email, item: client)
///     }
/// }
/// ```
///
/// Items are objects, arrays or scalars alike, and one collection may hold items of several types. Dates are stored as
/// RFC 3339 text in UTC; integers keep their 64 bits and `Decimal` its digits.
///
/// An id is 1 to 512 bytes of UTF-8 without control characters; any other text is legal. Ids are compared by code point:
/// two that Swift's `String` takes for equal because they are canonically equivalent are two ids.
///
/// ### What every method throws
/// Beside the errors that a method names: ``CRUDError`` with one of the codes
/// - ``CRUDError/Code/invalidParams`` for an id or a collection name that breaks the rule,
/// - ``CRUDError/Code/collectionNotFound``, ``CRUDError/Code/permissionDenied``, ``CRUDError/Code/limitExceeded``,
///   ``CRUDError/Code/unsupported`` (the collection's format cannot hold that item) and ``CRUDError/Code/corrupt`` as
///   the protocol has them,
/// - ``CRUDError/Code/unavailable`` and ``CRUDError/Code/noSpace``: nothing was applied, the call may be made again,
/// - ``CRUDError/Code/outcomeUnknown`` (writes only): it may or may not have been applied;
///
/// `CancellationError` where the task was cancelled before the call was sent, or a read at any time; and `EncodingError`
/// or `DecodingError` as they come from the item's own coding.
///
/// ### Writing a repository
/// Four methods are to be implemented; `upsert`, `exists` and `read(ids:)` have implementations that use them, for a
/// repository that knows no shorter way. Each write must take effect whole or not at all, and alone.
public protocol CRUDRepository: Sendable {
    /// Stores a new record.
    ///
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``.
    @discardableResult
    func create<Item: Encodable>(id: String, item: Item) async throws -> Revision

    /// Reads a record with its revision.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` where the item is no `Item`.
    func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item>

    /// Replaces the item of a record that is there.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the whole item from now on.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: whatever it is.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``.
    @discardableResult
    func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision

    /// Deletes a record that is there.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - ifRevision: the record is deleted only if this is its revision; nil: whatever it is.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the revision that the
    ///   record has in ``CRUDError/Details/revision``.
    func delete(id: String, ifRevision: Revision?) async throws

    /// Stores a record, whether it is there or not.
    ///
    /// - Returns: the record's new revision.
    @discardableResult
    func upsert<Item: Encodable>(id: String, item: Item) async throws -> Revision

    /// Tells whether there is a record.
    func exists(id: String) async throws -> Bool

    /// Reads several records.
    ///
    /// - Parameters:
    ///   - ids: at most as many as the daemon's limit `batch` (1000).
    ///   - type: what the items are read as.
    /// - Returns: the records that are there, in the order of `ids`; an id that is given twice is read once.
    /// - Throws: a `DecodingError` where an item is no `Item`.
    func readVersioned<Item: Decodable>(ids: [String], as type: Item.Type) async throws -> [Versioned<Item>]
}
