/// A plugin that the daemon has loaded, as returned by `plugin.list`.
public struct PluginDescription: Codable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// Its own version.
    public var version: String
    /// The version of the plugin ABI that it was built for.
    public var abi: Int
    /// The file that it was loaded from.
    public var path: String
}
