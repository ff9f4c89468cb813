import CRUDPluginKit

/// A collection as a batch is leaving it, seen by nobody else.
struct Draft {
    private let collection: MemoryCollection
    private var tree: RecordTree

    init(of collection: MemoryCollection) {
        self.collection = collection
        tree = collection.snapshot
    }

    func publish() {
        collection.publish(tree)
    }

    /// Applies one mutation and says whether it took effect.
    ///
    /// - Parameter usedBytes: what the records of all collections count.
    mutating func apply(
        _ mutation: Mutation<MemoryCollection>, _ position: Int, _ batch: borrowing WriteBatch<MemoryCollection>,
        usedBytes: inout Int, maximumBytes: Int
    ) -> Bool {
        let current = tree.record(mutation.id)
        guard permits(mutation, position, batch, current) else { return false }
        if mutation.kind == .check { return batch.applied(position, replacing: false) }
        let before = tree.size
        if mutation.kind == .put {
            let size = Record.size(
                id: mutation.id.count, item: mutation.item.count, revision: mutation.revision.count)
            let growth = size - (current?.size ?? 0)
            guard usedBytes + growth <= maximumBytes else { return batch.refused(position, .noSpace) }
            tree.insert(Record(id: mutation.id, item: mutation.item, revision: mutation.revision))
        } else {
            tree.remove(mutation.id)
        }
        usedBytes += tree.size - before
        return batch.applied(position, replacing: mutation.kind == .put && current != nil)
    }

    private func permits(
        _ mutation: Mutation<MemoryCollection>, _ position: Int, _ batch: borrowing WriteBatch<MemoryCollection>,
        _ current: Record?
    ) -> Bool {
        guard let current else { return batch.permits(mutation, at: position, current: nil) }
        return current.withRevision { batch.permits(mutation, at: position, current: $0) }
    }
}
