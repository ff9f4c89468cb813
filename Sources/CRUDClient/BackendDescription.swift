/// A backend, as `backend.list` tells.
public struct BackendDescription: Codable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// The plugin that it is made of; nil where it is a command.
    public var plugin: String?
    /// The executable that it is made of; nil where it is a plugin.
    public var command: String?
    /// Where the plugin runs: `inline` or `process`.
    public var isolation: String
    /// Whether it can be used, such as `ready` or `down`.
    public var state: String
    /// How often a child process was started in the place of one that was lost; nil where the plugin runs inside the
    /// daemon.
    public var restarts: Int?
    /// The child process, while there is one.
    public var pid: Int?
    /// What went wrong last, where something has: also how a child process was lost, though another one serves by now.
    public var lastError: String?
    /// What it can do.
    public var capabilities: [String]
}
