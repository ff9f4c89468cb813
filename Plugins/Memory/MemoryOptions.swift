import CRUDPluginKit

/// What the administrator configures.
struct MemoryOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case maximumBytes = "max_bytes"
    }

    /// How many bytes all records together may take; nil: as many as there are.
    let maximumBytes: Int?

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        maximumBytes = try reader.sizeIfPresent(.maximumBytes)
    }
}
