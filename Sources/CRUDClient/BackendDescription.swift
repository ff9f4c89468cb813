/// A backend, as returned by `backend.list`.
public struct BackendDescription: Codable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// The name of its plugin; nil if it is a command.
    public var plugin: String?
    /// The path of its executable; nil if it is a plugin.
    public var command: String?
    /// Where the plugin runs: `inline` or `process`.
    public var isolation: String
    /// Whether it is available, such as `ready` or `down`.
    public var state: String
    /// How often the child process was restarted; nil if the plugin runs inside the daemon.
    public var restarts: Int?
    /// The child process, if there is one.
    public var pid: Int?
    /// The last error, if there was one, also one that has been resolved by a restart of the child process.
    public var lastError: String?
    /// Its capabilities.
    public var capabilities: [String]
}
