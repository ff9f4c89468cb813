public import CRUDPluginABI

/// Mutations to apply in order, and where their outcomes go.
///
/// Each mutation up to the end of the batch (with ``isAtomic``: up to the first that does not succeed) is settled once,
/// by ``applied(_:replacing:)``, ``refused(_:_:)`` or ``mismatched(_:current:)``.
public struct WriteBatch<Collection: AnyObject>: ~Copyable {
    @usableFromInline let request: UnsafePointer<crudd_write>

    init(_ request: UnsafePointer<crudd_write>) {
        self.request = request
    }

    @inlinable public var count: Int { request.pointee.count }
    /// Whether all take effect or none does.
    @inlinable public var isAtomic: Bool { request.pointee.flags & UInt32(CRUDD_WRITE_ATOMIC) != 0 }

    /// The mutation at `position`, which is below ``count``.
    @inlinable
    public subscript(position: Int) -> Mutation<Collection> {
        Mutation(request.pointee.mutations[position])
    }

    /// The mutation took effect.
    ///
    /// - Parameter replacing: whether a put found a record in its place.
    /// - Returns: true, as the others return false: whether the mutation took effect.
    @inlinable
    @discardableResult
    public func applied(_ position: Int, replacing: Bool) -> Bool {
        request.pointee.outcomes[position].status = crudd_status(CRUDD_OK)
        request.pointee.outcomes[position].replaced = replacing ? 1 : 0
        return true
    }

    /// The mutation did nothing, for a reason of its own.
    @inlinable
    @discardableResult
    public func refused(_ position: Int, _ status: StorageFailure.Status) -> Bool {
        request.pointee.outcomes[position].status = status.rawValue
        return false
    }

    /// The mutation did nothing, as the record has another revision than it expects.
    ///
    /// - Parameter current: that revision, at most 64 bytes.
    @inlinable
    @discardableResult
    public func mismatched(_ position: Int, current: UnsafeRawBufferPointer) -> Bool {
        let outcome = request.pointee.outcomes + position
        outcome.pointee.status = crudd_status(CRUDD_MISMATCH)
        // The destination is an array inside the struct; what exceeds it is left out.
        let size = unsafe withUnsafeMutableBytes(of: &outcome.pointee.revision) { revision in
            let size = min(current.count, revision.count)
            revision.copyMemory(from: UnsafeRawBufferPointer(rebasing: current[..<size]))
            return size
        }
        outcome.pointee.revision_size = UInt32(size)
        return false
    }
}

/// One change of one record.
public struct Mutation<Collection: AnyObject> {
    public let collection: Collection
    public let kind: Kind
    public let precondition: Precondition
    /// 1 to 512 bytes of UTF-8 without control characters; any other text is legal.
    public let id: UnsafeRawBufferPointer
    /// What a put stores.
    public let item: UnsafeRawBufferPointer
    /// What a put stores beside the item: at most 64 bytes of ASCII.
    public let revision: UnsafeRawBufferPointer
    /// The revision that must be there, for ``Precondition/revision``.
    public let expected: UnsafeRawBufferPointer

    public struct Kind: RawRepresentable, Equatable, Sendable {
        public let rawValue: UInt32

        @inlinable
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Stores item and revision.
        @inlinable public static var put: Kind { Kind(rawValue: UInt32(CRUDD_PUT)) }
        /// Removes the record; without one the outcome is `notFound`.
        @inlinable public static var remove: Kind { Kind(rawValue: UInt32(CRUDD_REMOVE)) }
        /// Changes nothing; its precondition is what counts. Only in a batch that is ``WriteBatch/isAtomic``.
        @inlinable public static var check: Kind { Kind(rawValue: UInt32(CRUDD_CHECK)) }
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
        // The pointer is one that the kit made from a `Collection` in `open_collection` and keeps alive.
        collection = unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(mutation.collection))
            .takeUnretainedValue()
        kind = Kind(rawValue: mutation.kind)
        precondition = Precondition(rawValue: mutation.precondition)
        id = UnsafeRawBufferPointer(mutation.id)
        item = UnsafeRawBufferPointer(mutation.item)
        revision = UnsafeRawBufferPointer(mutation.revision)
        expected = UnsafeRawBufferPointer(mutation.expected)
    }
}
