import CRUDPluginABI

/// How a collection is to be opened.
public struct CollectionSpecification: ~Copyable, CallRequest {
    public let call: CallContext
    private let specification: crudd_collection_spec

    init(_ specification: crudd_collection_spec, _ call: CallContext) {
        self.specification = specification
        self.call = call
    }

    /// Change nothing: neither the collection's indexes nor what it remembers. The host only looks, or removes records.
    public var isAsItIs: Bool { specification.flags & UInt32(CRUDD_OPEN_AS_IT_IS) != 0 }
    /// Make the collection if it is not there.
    public var creates: Bool { specification.flags & UInt32(CRUDD_OPEN_CREATE) != 0 }
    /// The records will be scanned by sequence number, and removals are remembered from now on. If not, the collection
    /// forgets those that it remembers.
    public var keepsSequences: Bool { specification.flags & UInt32(CRUDD_OPEN_SEQUENCES) != 0 }
    /// 1 to 128 bytes of UTF-8 without control characters; any other text is legal.
    public var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(specification.name) }
    /// What the items are: "json", "xml" or "plist".
    public var format: UnsafeRawBufferPointer { UnsafeRawBufferPointer(specification.format) }
    /// How many indexes there are.
    public var indexCount: Int { specification.index_count }

    /// The name of an index, a property path; `position` is below ``indexCount`` and is the index's number in all calls
    /// from then on.
    public func index(at position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(specification.indexes[position])
    }
}
