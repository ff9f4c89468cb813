/// The options of a plugin, read from the JSON object that the host makes of the configuration.
///
/// ```swift
/// struct MyOptions: PluginOptions {
///     enum Key: String, CaseIterable { case directory, fsync }
///
///     let directory: String
///     let fsync: Bool
///
///     init(_ reader: OptionReader<Key>) throws(StorageFailure) {
///         directory = try reader.absolutePath(.directory)
///         fsync = try reader.bool(.fsync, default: true)
///     }
/// }
/// ```
/// It must not touch storage: the host checks options before it opens any. Options that are not a `Key` are refused
/// before `init` is called.
public protocol PluginOptions {
    /// The names of all options.
    associatedtype Key: RawRepresentable<String>, CaseIterable

    /// - Throws: ``StorageFailure`` with `invalidOptions` and a pointer to the option.
    init(_ reader: OptionReader<Key>) throws(StorageFailure)
}

extension PluginOptions {
    /// - Parameter text: a JSON object; no bytes at all stand for an empty one.
    init(text: UnsafeRawBufferPointer) throws(StorageFailure) {
        try self.init(OptionReader(text: text))
    }
}
