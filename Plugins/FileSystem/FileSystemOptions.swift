import CRUDPluginKit

/// What the administrator configures.
struct FileSystemOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case directory, fsync
    }

    /// The absolute path of the directory that has everything in it.
    let directory: String
    /// Whether a write counts as done once the disk has it; otherwise once the kernel has it.
    let syncs: Bool

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        syncs = try reader.bool(.fsync, default: true)
        directory = try reader.absolutePath(.directory)
    }
}
