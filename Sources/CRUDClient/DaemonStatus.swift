/// How a daemon is, as `daemon.status` tells.
public struct DaemonStatus: Codable, Sendable {
    /// The daemon's version.
    public var version: String
    public var pid: Int
    /// Since it was started, in seconds.
    public var uptimeSeconds: Double
    /// How many sessions are open, the caller's own among them.
    public var sessions: Int
    /// The file that it is configured by.
    public var configuration: String
}
