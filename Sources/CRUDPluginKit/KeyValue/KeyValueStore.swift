/// A store of byte strings under ordered keys, such as LMDB, RocksDB or FoundationDB. ``KeyValueBackend`` makes it a
/// plugin with indexes, transactions, sequence numbers and expiry:
///
/// ```swift
/// @c @implementation
/// public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? {
///     PluginTable.export(KeyValueBackend<MyStore>.self)
/// }
/// ```
/// One call is made at a time. Each may block; the host has threads for that.
public protocol KeyValueStore: AnyObject {
    /// What the administrator configures.
    associatedtype Options: PluginOptions

    /// The plugin's name and version, for people.
    static var name: String { get }
    static var version: String { get }
    /// Whether changes survive power loss once ``apply(_:)`` has returned. By default true.
    static var isDurable: Bool { get }
    /// The option that says where the storage is, see ``StorageBackend/storageOption``. By default nil.
    static var storageOption: Options.Key? { get }

    /// Opens the store.
    ///
    /// - Throws: ``StorageFailure`` with `unavailable` where a later attempt may succeed, `invalidOptions` where none
    ///   can.
    init(options: Options, host: Host) throws(StorageFailure)

    /// The value of a key; nil: there is none.
    func value(for key: StoredKey) throws(StorageFailure) -> [UInt8]?

    /// The pairs whose keys lie in a range, in the order of their keys.
    ///
    /// - Parameters:
    ///   - isReversed: whether the order is descending.
    ///   - limit: not more than the first so many pairs in that order.
    func pairs(
        in range: Range<StoredKey>, isReversed: Bool, limit: Int
    ) throws(StorageFailure) -> [(key: StoredKey, value: [UInt8])]

    /// Stores new values, and removes those of keys that have none. All of it takes effect or nothing, also after a
    /// crash.
    ///
    /// - Throws: ``StorageFailure`` if nothing was changed (`outcomeUnknown`: if something may have been).
    func apply(_ changes: [StoredKey: [UInt8]?]) throws(StorageFailure)

    /// Closes the store.
    func close()
}

extension KeyValueStore {
    public static var isDurable: Bool { true }
    public static var storageOption: Options.Key? { nil }
}

/// A key of a ``KeyValueStore``: at most 1.7 KiB, ordered by byte, a shorter one before those that it begins.
public struct StoredKey: Hashable, Comparable, Sendable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    public static func < (left: StoredKey, right: StoredKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}
