import CRUDPluginKit

/// What the administrator configures.
struct MemoryOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case maximumBytes = "max_bytes"
        case log
    }

    /// How many bytes all records together may take; nil: as many as there are.
    let maximumBytes: Int?
    /// The absolute path of the directory of the log; nil: records end with the process.
    let log: String?

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        maximumBytes = try reader.sizeIfPresent(.maximumBytes)
        log = try reader.absolutePathIfPresent(.log)
    }
}
