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
    /// ``WriteBatch/isAtomic`` is understood, over several collections too.
    public static let transactions = Capabilities(rawValue: UInt64(CRUDD_HAS_TRANSACTIONS))
    /// A write that was answered survives power loss.
    public static let durable = Capabilities(rawValue: UInt64(CRUDD_IS_DURABLE))
    /// ``StorageReader/query(_:of:)`` and ``StorageReader/count(matching:in:)`` are there.
    public static let queries = Capabilities(rawValue: UInt64(CRUDD_CAN_QUERY))
}
