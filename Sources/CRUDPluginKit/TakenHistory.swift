import CRUDPluginABI

/// The history of another collection, which is being moved here: the one that has copies of its records continues it.
///
/// A copy is written with the sequence number of its original, which may be lower than others. A copy that is removed
/// has the number 0 for that, and the removal is not remembered.
public struct TakenHistory<Collection: AnyObject>: ~Copyable, CallRequest {
    public let call: CallContext
    public let collection: Collection
    /// Of the collection's history from then on; it fits a signed integer.
    public let identity: UInt64
    /// Of the collection's history from then on.
    public let forgotten: UInt64
    /// ``StorageBackend/lastSequence`` is not lower from then on.
    public let lastSequence: UInt64
    private let request: crudd_taken_history

    init(_ request: crudd_taken_history, _ call: CallContext) {
        self.call = call
        self.request = request
        // The pointer is one that the kit made from a `Collection` in `openCollection` and keeps alive.
        collection = unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(request.collection))
            .takeUnretainedValue()
        identity = request.identity
        forgotten = request.forgotten
        lastSequence = request.last_sequence
    }

    /// How many removals are to be remembered besides, as old as `now`.
    public var removalCount: Int { request.count }

    /// A removal that is to be remembered, unless it is: the id of a record, valid during the call, and the number.
    ///
    /// - Parameter position: below ``removalCount``.
    public func removal(_ position: Int) -> (id: UnsafeRawBufferPointer, sequence: UInt64) {
        // The host has initialized as many elements, each of that size.
        let place = UnsafeRawPointer(request.removals!) + position * request.removal_size
        let record: crudd_record = fullStruct(place, size: request.removal_size)
        return (UnsafeRawBufferPointer(record.id), record.sequence)
    }
}
