import CRUDModel
import CRUDPluginHost

extension OpenStorage {
    /// Logs a mutation's record where that cannot be decoded.
    func noteIfCorrupt(_ mutation: Mutation, in batch: MutationBatch, _ error: CRUDError) {
        guard error.code == .corrupt else { return }
        failures.note(corrupt: [Array(batch.arena.bytes(mutation.id))], in: mutation.collection)
    }

    /// The record that a mutation depends on.
    ///
    /// - Parameters:
    ///   - known: the record, nil in it where there is none; nil: it has to be read.
    ///   - withItem: whether the item is wanted, where the mutation depends on that.
    ///   - toWrite: whether the mutation is about to be made, and has failed as another program came between.
    func currentRecord(
        of mutation: Mutation, in batch: MutationBatch, _ known: CurrentRecordReader.Record??, withItem: Bool = true,
        toWrite: Bool = false
    ) throws(CRUDError) -> CurrentRecordReader.Record? {
        if let known { return known }
        return try currentRecords().record(
            of: mutation, in: batch, withItem: withItem && mutation.transformation != nil, toWrite: toWrite)
    }

    /// Reads the records that mutations depend on, those of a collection in one call: in the order of the names, so
    /// that daemons that lock them do not wait for each other in a circle.
    ///
    /// - Parameters:
    ///   - mutations: nil for one that depends on none.
    ///   - toWrite: as of ``currentRecord(of:in:_:withItem:toWrite:)``.
    /// - Returns: for each its record, nil in it where there is none; nil where it has to be read by itself.
    func currentRecords(of mutations: [PluginMutation?], toWrite: Bool = false) -> [CurrentRecordReader.Record??] {
        var records = [CurrentRecordReader.Record??](repeating: nil, count: mutations.count)
        var reads: [CurrentRecordRead: (name: [UInt8], positions: [Int])] = [:]
        for (position, mutation) in mutations.enumerated() {
            guard let mutation = mutation?.mutation, let handle = mutation.collection.handle else { continue }
            let read = CurrentRecordRead(collection: handle, withItems: toWrite || mutation.transformation != nil)
            reads[read, default: (mutation.collection.name, [])].positions.append(position)
        }
        let ordered = reads.sorted { $0.value.name.lexicographicallyPrecedes($1.value.name) }
        for (read, (_, positions)) in ordered where positions.count > 1 || toWrite {
            let group = positions.compactMap { mutations[$0] }
            // Should it fail, each is read by itself, and has an error of its own.
            let found = try? currentRecords().records(of: group, withItems: read.withItems, toWrite: toWrite)
            for (position, record) in zip(positions, found ?? []) { records[position] = record }
        }
        return records
    }
}

/// What the records of one call have in common.
private struct CurrentRecordRead: Hashable {
    let collection: OpaquePointer
    let withItems: Bool
}
