/// A store of byte strings under ordered keys, such as LMDB, LevelDB or RocksDB. ``KeyValueBackend`` makes it a plugin
/// with indexes, transactions, sequence numbers and expiry:
///
/// ```swift
/// @c @implementation
/// public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? {
///     PluginTable.export(KeyValueBackend<MyStore>.self)
/// }
/// ```
/// One call is made at a time. Each may block; the host has threads for that.
///
/// A function may throw a ``StorageFailure``, or what the code that it calls throws. That one is logged by its
/// description, which must not contain anything of a record, and is `unavailable` from `init` and `internal` from a
/// read. From ``apply(_:)`` it means that something may have been changed; the host then closes the store and opens it
/// again.
public protocol KeyValueStore: AnyObject {
    /// What the administrator configures: ``NoOptions``, ``PathOptions``, or a type of yours.
    associatedtype Options: PluginOptions

    /// The plugin's name and version, for people.
    static var name: String { get }
    static var version: String { get }
    /// Whether changes survive power loss once ``apply(_:)`` has returned. By default true.
    static var isDurable: Bool { get }
    /// The option that says where the storage is, see ``StorageBackend/storageOption``. By default the path of
    /// ``PathOptions``, and nil for other options.
    static var storageOption: Options.Key? { get }

    /// Opens the store, and makes it if need be. Where ``Host/expectsStorage`` it makes none: where there is none it
    /// throws a ``StorageFailure`` with `notFound`.
    ///
    /// - Throws: ``StorageFailure`` with `unavailable` where a later attempt may succeed, `invalidOptions` where none
    ///   can.
    init(options: Options, host: Host) throws

    /// The value of a key; nil: there is none. By default found by ``scan(_:isReversed:_:)``.
    func value(for key: StoredKey) throws -> [UInt8]?

    /// Visits the pairs whose keys lie in a range, in the order of their keys.
    ///
    /// - Parameters:
    ///   - isReversed: whether the order is descending.
    ///   - visit: returns false if it has had enough: return at once. It does not call the store.
    func scan(_ range: Range<StoredKey>, isReversed: Bool, _ visit: (StoredKey, [UInt8]) -> Bool) throws

    /// Stores new values, and removes those of keys that have none. All of it takes effect or nothing, also after a
    /// crash.
    ///
    /// - Throws: ``StorageFailure`` if nothing was changed (`outcomeUnknown`: if something may have been).
    func apply(_ changes: [StoredKey: [UInt8]?]) throws

    /// Closes the store. By default nothing: for stores that close themselves when nobody refers to them any more.
    func close()
}

extension KeyValueStore {
    public static var isDurable: Bool { true }
    public static var storageOption: Options.Key? { nil }

    public func value(for key: StoredKey) throws -> [UInt8]? {
        var found: [UInt8]?
        try scan(key..<key.next, isReversed: false) { _, value in
            found = value
            return false
        }
        return found
    }

    public func close() {}
}

extension KeyValueStore where Options == PathOptions {
    public static var storageOption: PathOptions.Key? { .path }
}

/// A key of a ``KeyValueStore``: at most 1547 bytes, ordered by byte, a shorter one before those that it begins. LMDB
/// takes keys of that size if it was compiled with `MDB_MAXKEYSIZE=0`.
public struct StoredKey: Hashable, Comparable, Sendable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Nothing lies between a key and the same with a 0 appended.
    var next: StoredKey { StoredKey(bytes + [0]) }

    public static func < (left: StoredKey, right: StoredKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}
