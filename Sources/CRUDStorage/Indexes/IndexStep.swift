import CRUDModel
import CRUDPluginHost
import CRUDQuery

/// The records of one step of an ``IndexBuilder``, and the mutations that give them their keys.
final class IndexStep: RecordVisitor {
    let batch = MutationBatch { _ in }
    private(set) var lastID: [UInt8] = []
    private(set) var count = 0
    /// Whether the step has ended before its last record, for its items are large.
    private(set) var isFull = false
    private let collection: BackendCollection
    private var keys: RecordKeys
    private var bytes = 0

    /// The most bytes of items that a step looks at.
    private static let maximumBytes = 4 << 20

    init(_ collection: BackendCollection) {
        self.collection = collection
        keys = RecordKeys(collection.indexPaths)
    }

    func visit(_ record: FoundRecord) -> Bool {
        lastID.replaceSubrange(0..., with: record.id)
        count += 1
        bytes += record.item.count
        // The buffers are valid during this call.
        let item = unsafe record.item.bindMemory(to: UInt8.self).span
        if let keys = keys.keys(ofStored: item, collection.codec) {
            var mutation = Mutation(
                .setKeys, in: collection, id: unsafe batch.store(record.id.bindMemory(to: UInt8.self).span),
                precondition: .revision(unsafe batch.store(record.revision.bindMemory(to: UInt8.self).span)))
            mutation.keys = batch.store(keys: keys)
            batch.append(mutation)
        }
        isFull = bytes >= Self.maximumBytes
        return !isFull
    }
}
