import CRUDPluginABI

/// Removals to forget.
public struct TrimRequest<Collection: AnyObject>: ~Copyable, CallRequest {
    public let call: CallContext
    public let collection: Collection
    /// Removals are forgotten that were made before this, by the `now` of their batch: milliseconds since 1970-01-01
    /// UTC.
    public let before: Int64
    /// At most so many are forgotten, those with the lowest sequence numbers first; 0: none.
    public let limit: Int

    init(_ request: crudd_trim, _ call: CallContext) {
        self.call = call
        // The pointer is one that the kit made from a `Collection` in `openCollection` and keeps alive.
        collection = unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(request.collection))
            .takeUnretainedValue()
        before = request.before
        limit = request.limit
    }
}

/// What a collection remembers that was opened to keep sequence numbers.
public struct History: Sendable {
    /// A random number that is not 0, stored with the collection. It ends with the collection, and when that is opened
    /// without sequence numbers.
    public var identity: UInt64
    /// The highest sequence number of a removal that was forgotten; 0: none.
    public var forgotten: UInt64
    /// How many removals were forgotten by the call.
    public var trimmed: Int
    /// Of ``StorageReader/readHistory(of:_:)``: every change up to this number is shown by a scan that begins later,
    /// unless it never takes effect. A change that was acknowledged before is among them, unless a transaction of
    /// others that is in progress for long holds it up. It may fall where the record with that number is changed again
    /// meanwhile.
    public var end: UInt64
    /// Of ``StorageReader/readHistory(of:_:)``: a change that is still to take effect, or to be shown, has this number
    /// or a higher one; it is above ``end``, and never falls as long as the identity stays the same.
    public var next: UInt64

    public init(identity: UInt64, forgotten: UInt64, trimmed: Int = 0, end: UInt64 = 0, next: UInt64 = 0) {
        self.identity = identity
        self.forgotten = forgotten
        self.trimmed = trimmed
        self.end = end
        self.next = next
    }

    /// A new identity. It fits a signed integer, which is what databases store.
    public static func makeIdentity() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }
}

extension History {
    func report(to history: inout crudd_history) {
        history.identity = identity
        history.forgotten = forgotten
        history.trimmed = UInt64(clamping: trimmed)
        // An older host has not made room for these; it asks for neither.
        guard Int(history.struct_size) >= MemoryLayout<crudd_history>.size else { return }
        history.end = end
        history.next = next
    }
}
