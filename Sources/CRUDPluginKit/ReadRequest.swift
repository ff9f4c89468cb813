public import CRUDPluginABI

/// Ids to look up.
public struct ReadRequest: ~Copyable {
    @usableFromInline let request: UnsafePointer<crudd_read>

    init(_ request: UnsafePointer<crudd_read>) {
        self.request = request
    }

    /// How many ids there are; the same one may stand at several positions.
    @inlinable public var count: Int { request.pointee.count }
    /// Whether the items are wanted, not just the revisions.
    @inlinable public var wantsItems: Bool { request.pointee.flags & UInt32(CRUDD_READ_WITHOUT_ITEMS) == 0 }

    /// The id at `position`, which is below ``count``.
    @inlinable
    public func id(at position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(request.pointee.ids[position])
    }

    /// Hands the record with the id at `position` to the host, which copies what it keeps.
    ///
    /// - Parameter item: empty where ``wantsItems`` is false.
    /// - Returns: false if the host has had enough: return at once.
    @inlinable
    public func emit(_ position: Int, item: RawSpan, revision: RawSpan) -> Bool {
        emitted(
            request.pointee.emit, request.pointee.context, position, request.pointee.ids[position], item, revision)
    }
}

/// A walk over records by id, ascending by byte.
public struct ScanRequest: ~Copyable {
    @usableFromInline let request: UnsafePointer<crudd_scan>

    init(_ request: UnsafePointer<crudd_scan>) {
        self.request = request
    }

    /// Only ids greater than this; empty: from the start.
    @inlinable public var after: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.after) }
    /// Only ids that begin with this; empty: all.
    @inlinable public var prefix: UnsafeRawBufferPointer { UnsafeRawBufferPointer(request.pointee.prefix) }
    /// At most so many records; nil: no limit.
    @inlinable public var limit: Int? { request.pointee.limit == 0 ? nil : request.pointee.limit }
    /// Whether the items are wanted, not just ids and revisions.
    @inlinable public var wantsItems: Bool { request.pointee.flags & UInt32(CRUDD_READ_WITHOUT_ITEMS) == 0 }

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
}

@inlinable
func emitted(
    _ emit: crudd_emit, _ context: UnsafeMutableRawPointer?, _ position: Int, _ id: crudd_bytes, _ item: RawSpan,
    _ revision: RawSpan
) -> Bool {
    // The host reads the bytes before `emit` returns.
    unsafe item.withUnsafeBytes { item in
        unsafe revision.withUnsafeBytes { revision in
            emit(context, position, id, crudd_bytes(item), crudd_bytes(revision)) == 0
        }
    }
}

extension crudd_bytes {
    @inlinable
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(data: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
    }
}
