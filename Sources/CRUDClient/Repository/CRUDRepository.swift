/// The records of one collection, each an item of any Codable type with an id: the protocol on which application code
/// should depend, whatever implements it.
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
/// Items may be objects, arrays or scalars, and one collection may have items of several types. Dates are stored as
/// RFC 3339 text in UTC; integers keep their 64 bits and `Decimal` its digits.
///
/// An id has 1 to 512 bytes of UTF-8 without control characters. Ids are compared by code point: two ids may be
/// different although they are canonically equivalent, and so equal as Swift `String`s.
///
/// ### Errors of every method
/// Besides the errors that a method names: ``CRUDError`` with one of the codes
/// - ``CRUDError/Code/invalidParams`` for an invalid id or name of a collection,
/// - ``CRUDError/Code/collectionNotFound``, ``CRUDError/Code/permissionDenied``, ``CRUDError/Code/limitExceeded``,
///   ``CRUDError/Code/unsupported`` (the collection's format cannot represent that item) and
///   ``CRUDError/Code/corrupt`` as the protocol defines them,
/// - ``CRUDError/Code/unavailable`` and ``CRUDError/Code/noSpace``: nothing was applied, the call may be made again,
/// - ``CRUDError/Code/outcomeUnknown`` (writes only): it may or may not have been applied;
///
/// `CancellationError` if the task was cancelled before the call was sent, or during a read; and the `EncodingError` or
/// `DecodingError` of the item's own coding.
///
/// ### Implementing a repository
/// Four methods must be implemented; `upsert`, `exists` and `read(ids:)` have default implementations that use them.
/// Each write must be atomic.
public protocol CRUDRepository: Sendable {
    /// Stores a new record.
    ///
    /// - Returns: the record's revision.
    /// - Throws: ``CRUDError/Code/recordExists``.
    @discardableResult
    func create<Item: Encodable>(id: String, item: Item) async throws -> Revision

    /// Reads a record with its revision.
    ///
    /// - Throws: ``CRUDError/Code/recordNotFound``; a `DecodingError` if the item is not an `Item`.
    func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item>

    /// Replaces the item of an existing record.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - item: the new item.
    ///   - ifRevision: the record is replaced only if this is its revision; nil: in any case.
    /// - Returns: the record's new revision.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``.
    @discardableResult
    func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision

    /// Deletes an existing record.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - ifRevision: the record is deleted only if this is its revision; nil: in any case.
    /// - Throws: ``CRUDError/Code/recordNotFound``; ``CRUDError/Code/revisionMismatch``, with the
    ///   record's revision in ``CRUDError/Details/revision``.
    func delete(id: String, ifRevision: Revision?) async throws

    /// Stores a record, whether it exists or not.
    ///
    /// - Returns: the record's new revision.
    @discardableResult
    func upsert<Item: Encodable>(id: String, item: Item) async throws -> Revision

    /// Returns whether a record exists.
    func exists(id: String) async throws -> Bool

    /// Reads several records. Those whose stored bytes cannot be decoded are left out.
    ///
    /// - Parameters:
    ///   - ids: at most as many as the daemon's limit `batch` (1000).
    ///   - type: the type of the items.
    /// - Returns: the records that exist, in the order of `ids`; a repeated id is read once.
    /// - Throws: a `DecodingError` if an item is not an `Item`.
    func readVersioned<Item: Decodable>(ids: [String], as type: Item.Type) async throws -> [Versioned<Item>]
}
