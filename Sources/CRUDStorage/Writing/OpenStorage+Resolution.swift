import CRUDModel
import CRUDPluginHost

/// How a mutation that depends on the current record continues.
enum Resolution {
    case put(ResolvedPut)
    /// The plugin need not be asked.
    case decided(MutationOutcome)
}

extension OpenStorage {
    /// Logs a mutation's record where that cannot be decoded.
    func noteIfCorrupt(_ mutation: Mutation, in batch: MutationBatch, _ error: CRUDError) {
        guard error.code == .corrupt else { return }
        failures.note(corrupt: [Array(batch.arena.bytes(mutation.id))], in: mutation.collection)
    }

    /// Reads the record that a mutation depends on and decides what can be decided with it.
    func resolve(_ mutation: Mutation, at position: Int, in batch: MutationBatch) throws(CRUDError) -> Resolution {
        let transformation = mutation.transformation
        let record = try currentRecords().record(of: mutation, in: batch, withItem: transformation != nil)
        if let refusal = mutation.refusal(current: record?.revision, in: batch) { return .decided(refusal) }
        guard let transformation else { return .decided(.applied(replaced: false)) }
        return .put(try batch.resolve(mutation, by: transformation, of: record, at: position))
    }
}
