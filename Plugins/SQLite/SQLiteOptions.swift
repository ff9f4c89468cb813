import CRUDPluginKit

/// What the administrator configures.
struct SQLiteOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case path, synchronous, mmap, reserve
    }

    /// When a write counts as done; see <https://www.sqlite.org/pragma.html#pragma_synchronous>.
    enum Synchronous: String, CaseIterable {
        /// Once the disk has it.
        case full
        /// Once the kernel has it; the disk has it after the next checkpoint. Power loss may take the last writes.
        case normal
        /// As `normal`, and power loss may corrupt the file.
        case off
    }

    /// The absolute path of the database file.
    let path: String
    let synchronous: Synchronous
    /// Whether readers map the file into memory.
    let mmap: Bool
    /// The room that is reserved for deletions on a full disk, in bytes; 0: none.
    let reserve: Int

    private static let defaultReserve = 16 << 20

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        synchronous = try reader.choice(.synchronous, default: .full)
        mmap = try reader.bool(.mmap, default: false)
        reserve = try reader.sizeIfPresent(.reserve, atLeast: 0) ?? Self.defaultReserve
        path = try reader.absolutePath(.path)
    }
}
