/// A collection, as returned by `collection.list` and `collection.describe`.
public struct CollectionDescription: Codable, Sendable {
    public var name: String
    /// The name of its backend in the configuration.
    public var backend: String
    /// The format of stored items: `json`, `xml` or `plist`.
    public var format: String
    /// The paths of the properties that are indexed.
    public var indexes: [String]
    /// The number of its records. Only ``CRUDClient/collection(_:)`` returns it.
    public var count: Int?
    /// The capabilities of its backend. Only ``CRUDClient/collection(_:)`` returns them.
    public var capabilities: [String]?
}
