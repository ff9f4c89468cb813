/// The state of a daemon, as returned by `daemon.status`.
public struct DaemonStatus: Codable, Sendable {
    /// The daemon's version.
    public var version: String
    public var pid: Int
    /// The time since it was started, in seconds.
    public var uptimeSeconds: Double
    /// How many sessions are open, the caller's own among them.
    public var sessions: Int
    /// The path of its configuration file.
    public var configuration: String
}
