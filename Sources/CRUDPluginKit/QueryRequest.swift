public import CRUDPluginABI

/// A search for records by what is in them.
public struct QueryRequest: ~Copyable {
    @usableFromInline let request: UnsafePointer<crudd_query>

    init(_ request: UnsafePointer<crudd_query>) {
        self.request = request
    }

    /// Only records for which this is true, in CQL2 JSON, which the host has checked; empty: all.
    @inlinable public var filter: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.filter) }
    /// Only ids that begin with this; empty: all.
    @inlinable public var prefix: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.prefix) }
    /// The order: `[{"property":"a.b","order":"asc"},…]`, ties by id; empty: by id alone.
    @inlinable public var sort: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.sort) }
    /// Only records behind this place in the order: `{"values":[…],"id":"…"}`, a value for each key of the sort; empty:
    /// from the start.
    @inlinable public var after: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.after) }
    /// At most so many records; at least 1.
    @inlinable public var limit: Int { request.pointee.limit }
    /// Whether the items are wanted, not just ids and revisions.
    @inlinable public var wantsItems: Bool { request.pointee.flags & UInt32(CRUDD_READ_WITHOUT_ITEMS) == 0 }

    /// Whether nobody waits for the result any more: to be asked every millisecond or so while nothing is emitted. Then
    /// throw a ``StorageFailure`` with `unavailable`.
    @inlinable public var isInterrupted: Bool {
        request.pointee.interrupt.map { $0(request.pointee.context) != 0 } ?? false
    }

    /// Hands a record to the host, which copies what it keeps.
    ///
    /// - Parameters:
    ///   - position: counts from 0.
    ///   - item: empty where ``wantsItems`` is false.
    /// - Returns: false if the host has had enough: return at once.
    @inlinable
    public func emit(_ position: Int, id: RawSpan, item: RawSpan, revision: RawSpan) -> Bool {
        // The host reads the bytes before `emit` returns.
        unsafe id.withUnsafeBytes { id in
            emitted(request.pointee.emit, request.pointee.context, position, crudd_bytes(id), item, revision)
        }
    }

    /// Whether the host wants to know how the query is carried out; see ``report(index:scanned:)``.
    @inlinable public var wantsPlan: Bool { request.pointee.plan != nil }

    /// Tells how the query was carried out, for an administrator.
    ///
    /// - Parameters:
    ///   - index: the property path whose index served, of which 255 bytes are kept; nil: none did.
    ///   - scanned: how many records were looked at.
    public func report(index: String?, scanned: Int) {
        guard let plan = request.pointee.plan else { return }
        // The host owns the plan until the call returns; the text is cut to the size of its array.
        unsafe withUnsafeMutableBytes(of: &plan.pointee.index) { unsafe $0.store(text: index ?? "") }
        plan.pointee.scanned = UInt64(clamping: scanned)
    }
}

/// A count of the records that match a filter.
public struct CountRequest: ~Copyable {
    @usableFromInline let request: UnsafePointer<crudd_count>

    init(_ request: UnsafePointer<crudd_count>) {
        self.request = request
    }

    /// Only records for which this is true, in CQL2 JSON, which the host has checked; never empty.
    @inlinable public var filter: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.filter) }
    /// Only ids that begin with this; empty: all.
    @inlinable public var prefix: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.prefix) }

    /// Whether nobody waits for the result any more: to be asked every millisecond or so. Then throw a
    /// ``StorageFailure`` with `unavailable`.
    @inlinable public var isInterrupted: Bool {
        request.pointee.interrupt.map { $0(request.pointee.context) != 0 } ?? false
    }
}
