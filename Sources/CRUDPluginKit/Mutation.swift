public import CRUDPluginABI

/// One change of one record.
public struct Mutation<Collection: AnyObject> {
    public let collection: Collection
    public let kind: Kind
    public let precondition: Precondition
    /// 1 to 512 bytes of UTF-8 without control characters; any other text is legal.
    public let id: UnsafeRawBufferPointer
    /// What a put stores.
    public let item: UnsafeRawBufferPointer
    /// What a put stores beside the item: 1 to 64 bytes of printable ASCII.
    public let revision: UnsafeRawBufferPointer
    /// The revision that must be there, for ``Precondition/revision``.
    public let expected: UnsafeRawBufferPointer
    /// What a put stores: milliseconds since 1970-01-01 UTC; 0: the record never expires.
    public let expiresAt: Int64
    /// What a put stores: greater than that of every earlier mutation of the backend, removals included.
    public let sequence: UInt64
    /// What a put or ``Kind/setKeys`` stores: a key for each index of the collection.
    public let keys: IndexKeys

    public struct Kind: RawRepresentable, Equatable, Sendable {
        public let rawValue: UInt32

        @inlinable
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Stores the whole record.
        @inlinable public static var put: Kind { Kind(rawValue: UInt32(CRUDD_PUT)) }
        /// Removes the record; if there is none the outcome is `notFound`.
        @inlinable public static var remove: Kind { Kind(rawValue: UInt32(CRUDD_REMOVE)) }
        /// Changes nothing; only its precondition counts. Only in a batch that is ``WriteBatch/isAtomic``.
        @inlinable public static var check: Kind { Kind(rawValue: UInt32(CRUDD_CHECK)) }
        /// Stores the keys and nothing else. Only with ``Precondition/revision``.
        @inlinable public static var setKeys: Kind { Kind(rawValue: UInt32(CRUDD_SET_KEYS)) }
    }

    /// What must hold for the mutation to take effect.
    public struct Precondition: RawRepresentable, Equatable, Sendable {
        public let rawValue: UInt32

        @inlinable
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        @inlinable public static var none: Precondition { Precondition(rawValue: UInt32(CRUDD_IF_ANY)) }
        /// There is no record; else the outcome is `exists`.
        @inlinable public static var absent: Precondition { Precondition(rawValue: UInt32(CRUDD_IF_ABSENT)) }
        /// There is a record; else the outcome is `notFound`.
        @inlinable public static var present: Precondition { Precondition(rawValue: UInt32(CRUDD_IF_PRESENT)) }
        /// There is a record with the revision ``Mutation/expected``; else the outcome is `notFound` or a mismatch.
        @inlinable public static var revision: Precondition { Precondition(rawValue: UInt32(CRUDD_IF_REVISION)) }
    }

    @inlinable
    init(_ mutation: crudd_mutation) {
        let record = fullStruct(mutation.record)
        // The pointer is one that the kit made from a `Collection` in `open_collection` and keeps alive.
        collection = unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(mutation.collection))
            .takeUnretainedValue()
        kind = Kind(rawValue: mutation.kind)
        precondition = Precondition(rawValue: mutation.precondition)
        expected = UnsafeRawBufferPointer(mutation.expected)
        id = UnsafeRawBufferPointer(record.id)
        item = UnsafeRawBufferPointer(record.item)
        revision = UnsafeRawBufferPointer(record.revision)
        expiresAt = record.expires_at
        sequence = record.sequence
        keys = IndexKeys(record)
    }
}

/// The keys of a record, one for each index of its collection.
public struct IndexKeys {
    @usableFromInline let keys: UnsafePointer<crudd_bytes>?
    /// How many there are. The host gives as many as the collection has indexes.
    public let count: Int

    @inlinable
    init(_ record: crudd_record) {
        keys = record.keys
        count = record.key_count
    }

    /// The key of an index, at most 512 bytes; empty: none, also where `index` is not below ``count``.
    @inlinable
    public subscript(index: Int) -> UnsafeRawBufferPointer {
        guard index < count, let keys else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(keys[index])
    }
}
