/// The options of a plugin that has one: `path`, where its storage is.
public struct PathOptions: PluginOptions {
    public enum Key: String, CaseIterable, Sendable { case path }

    /// Absolute.
    public let path: String

    public init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        path = try reader.absolutePath(.path)
    }
}
