import CRUDPluginABI

/// Records to remove because they have expired.
public struct ExpiryRequest<Collection: AnyObject>: ~Copyable, CallRequest {
    public let call: CallContext
    public let collection: Collection
    private let request: crudd_expire

    init(_ request: crudd_expire, _ call: CallContext) {
        self.request = request
        self.call = call
        // The pointer is one that the kit made from a `Collection` in `openCollection` and keeps alive.
        collection = unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(request.collection))
            .takeUnretainedValue()
    }

    /// At most so many records are removed, and that many if there are; 0: none.
    public var limit: Int { request.limit }
    /// The sequence number of the first removal; each further one has the next number.
    public var firstSequence: UInt64 { request.first_sequence }

    /// Tells the host of a record that was removed, once that is as durable as the plugin promises.
    ///
    /// - Parameter index: how many were removed before it; it says the sequence number of the removal.
    public func emit(_ index: Int, id: RawSpan) {
        var record = crudd_record()
        record.struct_size = UInt32(MemoryLayout<crudd_record>.size)
        record.flags = UInt32(CRUDD_RECORD_REMOVED)
        record.sequence = firstSequence &+ UInt64(index)
        // The host reads the bytes before `emit` returns.
        unsafe id.withUnsafeBytes { id in
            record.id = crudd_bytes(id)
            _ = request.emit(request.context, index, &record)
        }
    }
}
