public import CRUDPluginABI

/// Mutations to apply in order, and where their outcomes go.
///
/// Each mutation up to the end of the batch (with ``isAtomic``: up to the first that does not succeed) gets one
/// outcome, by ``applied(_:replacing:)``, ``refused(_:_:)``, ``mismatched(_:current:)`` or
/// ``permits(_:at:current:)``.
public struct WriteBatch<Collection: AnyObject>: ~Copyable, CallRequest {
    public let call: CallContext
    @usableFromInline let request: crudd_write
    /// Those that the plugin declares.
    let capabilities: Capabilities

    /// - Throws: ``StorageFailure`` with `unsupported` for an atomic batch where the plugin has no transactions.
    init(_ request: crudd_write, _ call: CallContext, _ capabilities: Capabilities) throws(StorageFailure) {
        self.request = request
        self.call = call
        self.capabilities = capabilities
        if isAtomic { try capabilities.require(.transactions, for: "atomic batches") }
    }

    @inlinable public var count: Int { request.count }
    /// Whether all mutations take effect or none does.
    @inlinable public var isAtomic: Bool { request.flags & UInt32(CRUDD_WRITE_ATOMIC) != 0 }

    /// The mutation at `position`, which is below ``count``.
    @inlinable
    public subscript(position: Int) -> Mutation<Collection> {
        let mutation = UnsafeRawPointer(request.mutations!) + position * request.mutation_size
        if request.mutation_size >= MemoryLayout<crudd_mutation>.size {
            return Mutation(mutation.load(as: crudd_mutation.self))
        }
        return Mutation(fullStruct(mutation, size: request.mutation_size))
    }

    @usableFromInline
    func outcome(_ position: Int) -> UnsafeMutablePointer<crudd_outcome> {
        // The host has initialized as many elements of this type, each of that size.
        (UnsafeMutableRawPointer(request.outcomes!) + position * request.outcome_size)
            .assumingMemoryBound(to: crudd_outcome.self)
    }

    /// The mutation took effect.
    ///
    /// - Parameter replacing: whether a put found a record in its place.
    /// - Returns: true, as the others return false: whether the mutation took effect.
    @inlinable
    @discardableResult
    public func applied(_ position: Int, replacing: Bool) -> Bool {
        let outcome = outcome(position)
        outcome.pointee.status = crudd_status(CRUDD_OK)
        outcome.pointee.replaced = replacing ? 1 : 0
        return true
    }

    /// The mutation changed nothing, for a reason of its own.
    @inlinable
    @discardableResult
    public func refused(_ position: Int, _ status: StorageFailure.Status) -> Bool {
        outcome(position).pointee.status = status.rawValue
        return false
    }

    /// The mutation changed nothing, as the record has another revision than it expects.
    ///
    /// - Parameter current: that revision, at most 64 bytes.
    @inlinable
    @discardableResult
    public func mismatched(_ position: Int, current: UnsafeRawBufferPointer) -> Bool {
        let outcome = outcome(position)
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
