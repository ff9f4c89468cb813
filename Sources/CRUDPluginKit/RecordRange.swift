import CRUDPluginABI

/// Which records of a collection, and in which order.
public struct RecordRange {
    /// The order in which records are scanned.
    public enum Order: Equatable, Sendable {
        /// By id, ascending by byte.
        case id
        /// By the key of one index, then by id, both ascending by byte. With ``RecordRange/isUnkeyed``: by id.
        case key(_ index: Int)
        /// By sequence number, what was removed between the records. With ``RecordRange/isUnsequenced``: by id.
        case sequence
    }

    public let order: Order
    /// In the order of keys: instead, only the records that have no key in that index, by id.
    public let isUnkeyed: Bool
    /// In the order of sequence numbers: instead, only the records that have none, by id.
    public let isUnsequenced: Bool
    /// The least id or key, included; empty: no bound.
    public let lower: UnsafeRawBufferPointer
    /// Above the greatest id or key; empty: no bound.
    public let upper: UnsafeRawBufferPointer
    /// The least sequence number, included.
    public let lowerSequence: UInt64
    /// Above the greatest sequence number; nil: no bound.
    public let upperSequence: UInt64?

    /// - Throws: ``StorageFailure`` with `unsupported` for an order that the plugin does not support.
    init(_ range: UnsafePointer<crudd_range>, _ capabilities: Capabilities) throws(StorageFailure) {
        let range = fullStruct(range)
        switch range.order {
        case UInt32(CRUDD_BY_ID):
            order = .id
        case UInt32(CRUDD_BY_KEY):
            try capabilities.require(.indexes, for: "indexes")
            order = .key(Int(range.index))
        case UInt32(CRUDD_BY_SEQUENCE):
            try capabilities.require(.sequences, for: "sequence numbers")
            order = .sequence
        default:
            throw StorageFailure(.unsupported, "unknown order \(range.order)")
        }
        isUnsequenced = range.flags & UInt32(CRUDD_RANGE_UNSEQUENCED) != 0 && order == .sequence
        isUnkeyed = range.flags & UInt32(CRUDD_RANGE_UNKEYED) != 0 && order != .id && order != .sequence
        lower = UnsafeRawBufferPointer(range.lower)
        upper = UnsafeRawBufferPointer(range.upper)
        lowerSequence = range.lower_sequence
        upperSequence = range.upper_sequence == 0 ? nil : range.upper_sequence
    }

    /// The ids of a range by id, among all records or those without a key or a sequence number.
    public var ids: IDRange {
        IDRange(lower: Array(lower), upper: upper.isEmpty ? nil : Array(upper))
    }
}
