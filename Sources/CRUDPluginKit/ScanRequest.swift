public import CRUDPluginABI

/// A scan of records in order.
public struct ScanRequest: ~Copyable, CallRequest {
    public let call: CallContext
    /// Which records, and in which order.
    public let range: RecordRange
    @usableFromInline let request: crudd_scan
    /// How many records have been emitted.
    @usableFromInline let emittedCount: UnsafeMutablePointer<Int>

    init(
        _ request: crudd_scan, _ range: RecordRange, _ call: CallContext, emittedCount: UnsafeMutablePointer<Int>
    ) {
        self.request = request
        self.range = range
        self.call = call
        self.emittedCount = emittedCount
    }

    /// The whole order is reversed, ids of equal keys too.
    @inlinable public var isReversed: Bool { request.flags & UInt32(CRUDD_SCAN_REVERSE) != 0 }
    /// Whether any order will do, of a scan by id without bounds. One that is not by id gives each record a position,
    /// which rises, and which a record keeps until it is removed.
    @inlinable public var allowsAnyOrder: Bool { request.flags & UInt32(CRUDD_SCAN_ANY_ORDER) != 0 }
    /// With ``allowsAnyOrder``: only records behind this position; 0: the scan starts, or ``afterID`` says where to
    /// resume.
    @inlinable public var afterPosition: UInt64 { request.after_position }
    /// Whether the items are wanted, not just what else there is of a record.
    @inlinable public var wantsItems: Bool { request.flags & UInt32(CRUDD_SCAN_WITHOUT_ITEMS) == 0 }
    /// At most so many records; nil: no limit. ``emit(id:item:revision:expiresAt:sequence:position:)`` sees to it.
    @inlinable public var limit: Int? { request.limit == 0 ? nil : request.limit }
    /// Only records behind this key, with ``afterID``, in the direction of the scan. In the order of keys only, and not
    /// with ``RecordRange/isUnkeyed``.
    @inlinable public var afterKey: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.after_key) }
    /// Only records behind this id, in the direction of the scan; empty: from the start. Not in the order of sequence
    /// numbers, except with ``RecordRange/isUnsequenced``.
    @inlinable public var afterID: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.after_id) }

    /// The ids of a scan by id, among all records or those without a key or a sequence number, that lie behind
    /// ``afterID``.
    public var ids: IDRange { range.ids.resumed(after: afterID, isReversed: isReversed) }

    /// Hands a record to the host, which copies what it keeps. One that has expired is skipped.
    ///
    /// - Parameters:
    ///   - item: empty where ``wantsItems`` is false.
    ///   - expiresAt: milliseconds since 1970-01-01 UTC; 0: never.
    ///   - sequence: as it was stored; 0: written by somebody else.
    ///   - position: see ``allowsAnyOrder``; 0: the records come in the order of the range.
    /// - Returns: false if the host has had enough, or that was the last record up to ``limit``: return at once.
    @inlinable
    public func emit(
        id: RawSpan, item: RawSpan, revision: RawSpan, expiresAt: Int64, sequence: UInt64, position: UInt64 = 0
    ) -> Bool {
        if call.hasExpired(expiresAt) { return true }
        var record = crudd_record()
        record.expires_at = expiresAt
        record.sequence = sequence
        record.position = position
        return emit(id, &record, item, revision)
    }

    /// Tells the host, in a scan in the order of sequence numbers, that a record was removed.
    ///
    /// - Parameters:
    ///   - id: the id that it had.
    ///   - sequence: of the removal.
    /// - Returns: as ``emit(id:item:revision:expiresAt:sequence:position:)``.
    public func emitRemoval(id: RawSpan, sequence: UInt64) -> Bool {
        var record = crudd_record()
        record.flags = UInt32(CRUDD_RECORD_REMOVED)
        record.sequence = sequence
        return emit(id, &record, RawSpan(), RawSpan())
    }

    @inlinable
    func emit(_ id: RawSpan, _ record: inout crudd_record, _ item: RawSpan, _ revision: RawSpan) -> Bool {
        let index = emittedCount.pointee
        emittedCount.pointee = index + 1
        // The host reads the bytes before `emit` returns.
        let isWanted = unsafe id.withUnsafeBytes { id in
            record.id = crudd_bytes(id)
            return emitted(request.emit, request.context, index, &record, item, revision)
        }
        return isWanted && index + 1 != request.limit
    }
}

/// A count of records.
public struct CountRequest: ~Copyable, CallRequest {
    public let call: CallContext
    /// Which records.
    public let range: RecordRange
    private let request: crudd_count

    init(_ request: crudd_count, _ range: RecordRange, _ call: CallContext) {
        self.request = request
        self.range = range
        self.call = call
    }

    /// Counting may stop there; nil: no limit.
    public var limit: UInt64? { request.limit == 0 ? nil : request.limit }
}
