/// A backend, as `backend.list` tells.
public struct BackendDescription: Codable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// The plugin that it is made of; nil where it is a command.
    public var plugin: String?
    /// Where the plugin runs: `inline` or `process`.
    public var isolation: String
    /// Whether it can be used, such as `ready` or `down`.
    public var state: String
    /// What went wrong last, where something has.
    public var lastError: String?
    /// What it can do.
    public var capabilities: [String]
}
