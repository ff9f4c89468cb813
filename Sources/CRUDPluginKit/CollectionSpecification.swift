public import CRUDPluginABI

/// How a collection is to be opened.
public struct CollectionSpecification: ~Copyable {
    private let specification: UnsafePointer<crudd_collection_spec>

    init(_ specification: UnsafePointer<crudd_collection_spec>) {
        self.specification = specification
    }

    /// Make the collection if it is not there.
    public var creates: Bool { specification.pointee.flags & UInt32(CRUDD_OPEN_CREATE) != 0 }
    /// 1 to 128 bytes of UTF-8 without control characters; any other text is legal.
    public var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(specification.pointee.name) }
    /// What the items are: "json", "xml" or "plist".
    public var format: UnsafeRawBufferPointer { UnsafeRawBufferPointer(specification.pointee.format) }
    /// How many property paths are worth an index.
    public var indexCount: Int { specification.pointee.index_count }

    /// A property path worth an index; `position` is below ``indexCount``.
    public func index(at position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(specification.pointee.indexes[position])
    }
}

extension UnsafeRawBufferPointer {
    @inlinable
    init(_ bytes: crudd_bytes) {
        self.init(start: bytes.data, count: bytes.size)
    }
}
