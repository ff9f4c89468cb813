import CRUDPluginABI

/// What a plugin can do beyond the calls that every plugin has.
public struct Capabilities: OptionSet, Sendable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Readers are independent of each other and of the backend's own calls, on different threads.
    public static let readsConcurrently = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_CONCURRENTLY))
    /// A read of a few ids takes microseconds, so that the host may make it on its event loop.
    public static let readsFast = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_FAST))
    /// ``WriteBatch/isAtomic`` is supported, over several collections too.
    public static let transactions = Capabilities(rawValue: UInt64(CRUDD_HAS_TRANSACTIONS))
    /// A write that was acknowledged survives power loss.
    public static let durable = Capabilities(rawValue: UInt64(CRUDD_IS_DURABLE))
    /// Index keys are stored and kept in order: ``RecordRange/Order/key(_:)``, ``RecordRange/isUnkeyed`` and
    /// ``Mutation/Kind/setKeys`` are supported.
    public static let indexes = Capabilities(rawValue: UInt64(CRUDD_HAS_INDEXES))
    /// ``RecordRange/Order/sequence`` and ``StorageBackend/trimHistory(_:)`` are supported: a collection that was
    /// opened to keep sequence numbers remembers what was removed.
    public static let sequences = Capabilities(rawValue: UInt64(CRUDD_HAS_SEQUENCES))
    /// The time at which a record expires is stored, and ``StorageBackend/removeExpired(_:)`` is supported.
    public static let expiry = Capabilities(rawValue: UInt64(CRUDD_HAS_EXPIRY))
    /// ``StorageBackend/takeHistory(_:)`` is supported: a collection that is moved here continues its history. Needs
    /// ``sequences``.
    public static let takesHistory = Capabilities(rawValue: UInt64(CRUDD_TAKES_HISTORY))
    /// Others write to the storage too, while it is open here: no collection is moved there or from there. With
    /// ``sequences`` as well the storage numbers changes itself, ``StorageReader/readHistory(of:_:)`` is supported, and
    /// the numbers of mutations say only their order within one batch.
    public static let shared = Capabilities(rawValue: UInt64(CRUDD_IS_SHARED))
}

extension Capabilities {
    /// Refuses what the plugin has not declared; the host does not ask for it.
    func require(_ capability: Capabilities, for what: String) throws(StorageFailure) {
        if !isSuperset(of: capability) { throw StorageFailure(.unsupported, "this plugin does not support \(what)") }
    }
}
