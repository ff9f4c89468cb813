import CRUDModel
import CRUDPluginABI

/// A batch whose mutations take effect all or none, on its way to the plugin as one call of its own.
///
/// The plugin undoes all after the first mutation that fails. What only the host can tell is told before: whether a
/// transformation makes an item of what is there, whether a collection is there at all, and which revision a record has
/// that must not be there. If the batch holds such, it is rehearsed first: its mutations are gone through in order, each on the records as those before it leave them, until
/// one fails. The plugin then checks every precondition once more inside its transaction, so that somebody else who
/// writes the same storage can make the call fail, in which case all is done again, but not break the promise.
struct AtomicWrite {
    private let batch: MutationBatch
    private let writer: BackendWriter
    /// The records that mutations have touched so far; nil in it: removed.
    private var records: [RecordKey: RecordLookup.Record?] = [:]
    /// What transformations have made, by the index of their mutation.
    private var made: [Int: MadePut] = [:]

    init(_ batch: MutationBatch, _ writer: BackendWriter) {
        self.batch = batch
        self.writer = writer
    }

    /// Has the plugin carry out the batch and delivers it.
    mutating func carryOut() {
        defer { batch.finish() }
        let isRehearsed = !batch.refusals.isEmpty || batch.mutations.contains(where: \.needsRehearsal)
        for _ in 0..<WriteRun.maximumAttempts {
            if isRehearsed, let failure = rehearse() { return settle(failure) }
            do throws(CRUDError) {
                guard let failure = try write() else { return }
                guard isRehearsed, failure.outcome.isRefusal else { return settle(failure) }
            } catch {
                batch.failure = error
                return
            }
        }
        batch.failure = .contended
    }

    /// A mutation that fails, and how.
    private struct Failure {
        var index: Int
        var outcome: MutationOutcome
    }

    private func settle(_ failure: Failure) {
        batch.outcomes = Array(repeating: .applied(replaced: false), count: failure.index) + [failure.outcome]
    }

    // MARK: The rehearsal

    /// Goes through the mutations; answers the first that fails.
    private mutating func rehearse() -> Failure? {
        records.removeAll()
        made.removeAll()
        for index in batch.mutations.indices {
            do throws(CRUDError) {
                if let outcome = try rehearse(at: index) { return Failure(index: index, outcome: outcome) }
            } catch {
                return Failure(index: index, outcome: .refused(error))
            }
        }
        return nil
    }

    /// Does a mutation in thought; answers its outcome if it fails.
    private mutating func rehearse(at index: Int) throws(CRUDError) -> MutationOutcome? {
        if let refusal = batch.refusals[index] { throw refusal }
        let mutation = batch.mutations[index]
        let key = RecordKey(mutation, in: batch)
        let record: RecordLookup.Record?
        if let touched = records[key] {
            record = touched
        } else {
            record = try writer.lookup().record(of: mutation, in: batch, withItem: mutation.transformation != nil)
        }
        if let refusal = mutation.refusal(current: record?.revision, in: batch) { return refusal }
        switch mutation.kind {
        case .check: return nil
        case .remove:
            if record == nil { return .notFound }
            records[key] = .some(nil)
        case .put:
            if let transformation = mutation.transformation {
                made[index] = try batch.make(transformation, of: record, at: index)
            }
            let item = batch.arena.bytes(made[index]?.item ?? mutation.item)
            records[key] = RecordLookup.Record(
                item: Array(item), revision: Array(batch.arena.bytes(mutation.revision)))
        }
        return nil
    }

    // MARK: The call

    /// Calls the plugin; answers the first mutation that failed, in which case nothing was applied.
    private func write() throws(CRUDError) -> Failure? {
        // In a collection that is not there, only checks that nothing is there have got this far.
        let asked = batch.mutations.indices.filter { batch.mutations[$0].collection.isOpen }
        let outcomes =
            asked.isEmpty
            ? []
            : try writer.write(
                asked.map { crudd_mutation(batch.mutations[$0], in: batch, made: made[$0]) }, isAtomic: true)
        var settled = Array(repeating: MutationOutcome.applied(replaced: false), count: batch.mutations.count)
        for (index, outcome) in zip(asked, outcomes) {
            let outcome = MutationOutcome(outcome)
            guard case .applied = outcome else { return Failure(index: index, outcome: outcome) }
            settled[index] = outcome
        }
        batch.outcomes = settled
        return nil
    }
}

extension Mutation {
    fileprivate var needsRehearsal: Bool {
        if transformation != nil || !collection.isOpen { return true }
        if kind == .check, case .absent = precondition { return true }
        return false
    }
}
