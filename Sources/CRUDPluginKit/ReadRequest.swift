public import CRUDPluginABI

/// Records to read by id.
public struct ReadRequest: ~Copyable, CallRequest {
    public let call: CallContext
    @usableFromInline let request: crudd_read

    init(_ request: crudd_read, _ call: CallContext) {
        self.request = request
        self.call = call
    }

    /// How many ids there are; the same one may stand at several positions.
    @inlinable public var count: Int { request.count }
    /// Whether the items are wanted, not just what else there is of a record.
    @inlinable public var wantsItems: Bool { request.flags & UInt32(CRUDD_READ_WITHOUT_ITEMS) == 0 }
    /// A hint: the next write of the backend is going to store these records, each on condition that it is still what
    /// is read now, which has failed before, as another host was quicker. They may be locked until that write, or
    /// ``StorageReader/endSnapshot()``, has returned.
    @inlinable public var isToWrite: Bool { request.flags & UInt32(CRUDD_READ_TO_WRITE) != 0 }

    /// The id at `position`, which is below ``count``.
    @inlinable
    public func id(at position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(request.ids[position])
    }

    /// Hands the record with the id at `position` to the host, which copies what it keeps. One that has expired is
    /// skipped.
    ///
    /// - Parameters:
    ///   - item: empty where ``wantsItems`` is false.
    ///   - expiresAt: milliseconds since 1970-01-01 UTC; 0: never.
    ///   - sequence: as it was stored; 0: written by somebody else.
    /// - Returns: false if the host has had enough: return at once.
    @inlinable
    public func emit(_ position: Int, item: RawSpan, revision: RawSpan, expiresAt: Int64, sequence: UInt64) -> Bool {
        if call.hasExpired(expiresAt) { return true }
        var record = crudd_record()
        record.id = request.ids[position]
        record.expires_at = expiresAt
        record.sequence = sequence
        return emitted(request.emit, request.context, position, &record, item, revision)
    }
}

/// Completes the record and hands it to the host.
@inlinable
func emitted(
    _ emit: crudd_emit, _ context: UnsafeMutableRawPointer?, _ position: Int, _ record: inout crudd_record,
    _ item: RawSpan, _ revision: RawSpan
) -> Bool {
    // The host reads the bytes before `emit` returns.
    unsafe item.withUnsafeBytes { item in
        unsafe revision.withUnsafeBytes { revision in
            record.struct_size = UInt32(MemoryLayout<crudd_record>.size)
            record.item = crudd_bytes(item)
            record.revision = crudd_bytes(revision)
            return emit(context, position, &record) == 0
        }
    }
}
