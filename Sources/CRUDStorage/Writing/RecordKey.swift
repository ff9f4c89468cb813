import CRUDPluginHost

/// Which record a mutation is about.
struct RecordKey: Hashable {
    /// The plugin's handle: event loops have objects of their own for a collection.
    private let collection: OpaquePointer?
    private let id: [UInt8]

    init(_ mutation: PluginMutation) {
        self.init(mutation.mutation, in: mutation.batch)
    }

    init(_ mutation: Mutation, in batch: MutationBatch) {
        collection = mutation.collection.handle
        id = Array(batch.arena.bytes(mutation.id))
    }
}
