import CRUDModel
import CRUDPluginHost
import CRUDQuery

/// The records that one step of background work scans, and the mutations that it makes of them, each on condition that
/// the record is unchanged.
final class RecordStep: RecordVisitor {
    let batch = MutationBatch { _ in }
    private(set) var lastID: [UInt8] = []
    private(set) var count = 0
    /// Whether the step has ended before its last record, for its items are large.
    private(set) var isFull = false
    private let kind: Mutation.Kind
    private let collection: BackendCollection
    private let maximumBytes: Int
    private var keys: RecordKeys
    /// The number of the layout in force, by which keys are made; 0: no keys are.
    private let layout: UInt32
    private var bytes = 0

    /// - Parameters:
    ///   - kind: `put` to store the records again as they are, `setKeys` to give them their index keys.
    ///   - maximumBytes: the most bytes of items that the step scans, but for the last item.
    init(_ kind: Mutation.Kind, in collection: BackendCollection, maximumBytes: Int) {
        self.kind = kind
        self.collection = collection
        self.maximumBytes = maximumBytes
        let told = collection.toldLayout
        keys = RecordKeys(told?.layout.indexPaths ?? [])
        layout = told.map { $0.layout.indexPaths.isEmpty ? 0 : $0.number } ?? 0
    }

    func visit(_ record: FoundRecord) -> Bool {
        lastID.replaceSubrange(0..., with: record.id)
        count += 1
        bytes += record.item.count
        isFull = bytes >= maximumBytes
        // The buffers are valid during this call.
        let item = unsafe record.item.bindMemory(to: UInt8.self).span
        let keys = layout == 0 ? nil : keys.keys(ofStored: item, collection.codec)
        // A record that is corrupt has no item, and stays as it is; one whose keys cannot be made stays unkeyed.
        guard kind == .put ? !record.item.isEmpty : keys != nil else { return !isFull }
        let revision = unsafe batch.store(record.revision.bindMemory(to: UInt8.self).span)
        var mutation = Mutation(
            kind, in: collection, id: unsafe batch.store(record.id.bindMemory(to: UInt8.self).span),
            precondition: .revision(revision))
        if kind == .put {
            mutation.item = batch.store(item)
            mutation.revision = revision
            mutation.expiresAt = record.expiresAt
        }
        if let keys { mutation.keys = batch.store(IndexKeys(keys, layout: layout)) }
        batch.append(mutation)
        return !isFull
    }
}

extension OpenStorage {
    /// Has the plugin apply a step's mutations. Records that it refuses stay as they are.
    ///
    /// - Throws: why the plugin could not be asked for all of them; some may have been changed.
    func execute(_ step: RecordStep) throws(CRUDError) {
        let outcomes = apply(step.batch.pluginMutations[...])
        if let failure = outcomes.lazy.compactMap(\.commonFailure).first { throw failure }
    }
}
