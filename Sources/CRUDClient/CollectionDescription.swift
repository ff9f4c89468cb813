/// A collection, as `collection.list` and `collection.describe` tell.
public struct CollectionDescription: Codable, Sendable {
    public var name: String
    /// The backend that holds it, by its name in the configuration.
    public var backend: String
    /// What items are stored as: `json`, `xml` or `plist`.
    public var format: String
    /// The paths of the properties that are indexed.
    public var indexes: [String]
    /// How many records it holds. Only ``CRUDClient/collection(_:)`` tells.
    public var count: Int?
    /// What its backend can do. Only ``CRUDClient/collection(_:)`` tells.
    public var capabilities: [String]?
}
