import CRUDModel
import CRUDPluginHost

/// An atomic batch as one call of the plugin.
///
/// The plugin undoes all mutations after the first that fails. What only the host can decide is decided before: whether
/// a transformation makes an item of the current one, whether a collection exists at all, and which revision a record
/// has that must not exist. If the batch holds such a mutation it is run dry first: its mutations are evaluated in
/// order, each on the records as those before it leave them, until one fails. The plugin then checks every precondition
/// once more inside its transaction, so that somebody else who writes the same storage can make the call fail, in which
/// case it is retried, but not break the promise.
struct AtomicCommit {
    private let batch: MutationBatch
    private let storage: OpenStorage
    /// The records that mutations have touched so far; nil in it: removed.
    private var records: [RecordKey: CurrentRecordReader.Record?] = [:]
    /// Those that mutations depend on, by position, as far as they have been read.
    private var known: [CurrentRecordReader.Record??] = []
    /// What transformations have made, by the position of their mutation.
    private var resolved: [Int: ResolvedPut] = [:]

    init(_ batch: MutationBatch, _ storage: OpenStorage) {
        self.batch = batch
        self.storage = storage
    }

    /// Has the plugin apply the batch and delivers it.
    mutating func execute() {
        defer { batch.finish() }
        let needsDryRun = !batch.refusals.isEmpty || batch.mutations.contains(where: \.needsDryRun)
        for attempt in 1...GroupCommit.maximumAttempts {
            GroupCommit.pause(before: attempt)
            if needsDryRun, let failure = runDry() { return end(with: failure) }
            do throws(CRUDError) {
                guard let failure = try write() else { return }
                guard needsDryRun, failure.outcome.isRefusal else { return end(with: failure) }
            } catch {
                batch.failure = error
                return
            }
        }
        batch.failure = .contended
    }

    /// A mutation that fails, and how.
    private struct Failure {
        var position: Int
        var outcome: MutationOutcome
    }

    private func end(with failure: Failure) {
        batch.outcomes =
            Array(repeating: .applied(replaced: false), count: failure.position) + [failure.outcome]
    }

    // MARK: The dry run

    /// Evaluates the mutations in order.
    ///
    /// - Returns: the first that fails.
    private mutating func runDry() -> Failure? {
        records.removeAll()
        resolved.removeAll()
        known = storage.currentRecords(of: batch.pluginMutations)
        for position in batch.mutations.indices {
            do throws(CRUDError) {
                if let outcome = try runDry(at: position) { return Failure(position: position, outcome: outcome) }
            } catch {
                storage.noteIfCorrupt(batch.mutations[position], in: batch, error)
                return Failure(position: position, outcome: .refused(error))
            }
        }
        return nil
    }

    /// Evaluates a mutation.
    ///
    /// - Returns: its outcome if it fails.
    private mutating func runDry(at position: Int) throws(CRUDError) -> MutationOutcome? {
        if let refusal = batch.refusals[position] { throw refusal }
        let mutation = batch.mutations[position]
        let key = RecordKey(mutation, in: batch)
        let record: CurrentRecordReader.Record?
        if let touched = records[key] {
            record = touched
        } else {
            record = try storage.currentRecord(of: mutation, in: batch, known[position])
        }
        if let refusal = mutation.refusal(current: record?.revision, in: batch) { return refusal }
        switch mutation.kind {
        case .check, .setKeys: return nil
        case .remove:
            if record == nil { return .notFound }
            records[key] = .some(nil)
        case .put:
            if let transformation = mutation.transformation {
                resolved[position] = try batch.resolve(mutation, by: transformation, of: record, at: position)
            }
            records[key] = batch.record(after: mutation, resolved[position])
        }
        return nil
    }

    // MARK: The call

    /// Calls the plugin.
    ///
    /// - Returns: the first mutation that failed, in which case nothing was applied.
    private func write() throws(CRUDError) -> Failure? {
        // In a collection that does not exist, only checks that a record does not exist have got this far.
        let asked = batch.mutations.indices.filter { batch.mutations[$0].collection.isOpen }
        let mutations = asked.map {
            PluginMutation(batch: batch, position: $0, resolved: resolved[$0])
        }
        let outcomes = asked.isEmpty ? [] : try storage.write(mutations[...], isAtomic: true)
        var all = Array(repeating: MutationOutcome.applied(replaced: false), count: batch.mutations.count)
        for (position, outcome) in zip(asked, outcomes) {
            guard case .applied = outcome else { return Failure(position: position, outcome: outcome) }
            all[position] = outcome
        }
        batch.outcomes = all
        return nil
    }
}

extension Mutation {
    fileprivate var needsDryRun: Bool {
        transformation != nil || !collection.isOpen || isCheckForAbsence
    }
}
