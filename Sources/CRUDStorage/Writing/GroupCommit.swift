import CRUDModel
import CRUDPluginHost

/// Mutations of any number of batches as one call of the plugin, which a plugin with transactions makes one commit.
///
/// **Transformations.** A mutation that makes its item from the current one is written on condition that the record
/// still has the revision that was read. The records that such mutations need are read together, in one call, when the
/// commit is executed: one round trip to a server. This thread is the backend's only writer, so that the condition
/// fails only where somebody else writes the same storage; then the mutation is retried. That presumes that nothing
/// else in the commit is about the same record: a mutation that would be begins the next commit.
struct GroupCommit {
    private let storage: OpenStorage
    private var entries: [PluginMutation] = []
    /// Batches that are complete when the commit is.
    private var batches: [MutationBatch] = []
    /// The records of the commit, as soon as a transformation is among its mutations.
    private var records: Set<RecordKey>?

    /// How often a transformation is tried against somebody else's writes.
    static let maximumAttempts = 10
    /// How many bytes transformations may make before those so far are written.
    private static let maximumResolvedBytes = 8 << 20

    init(_ storage: OpenStorage) {
        self.storage = storage
    }

    // MARK: Joining

    mutating func append(_ batch: MutationBatch) {
        // A mutation of a collection that does not exist is one of a record that does not exist.
        batch.outcomes = Array(repeating: .notFound, count: batch.mutations.count)
        append(batch, batch.mutations.indices)
        batches.append(batch)
    }

    /// Adds some of a batch's mutations, whose outcomes are `notFound` so far. The batch is not delivered.
    mutating func append(_ batch: MutationBatch, _ positions: Range<Int>) {
        for position in positions {
            if let refusal = batch.refusals[position] {
                batch.outcomes[position] = .refused(refusal)
            } else if batch.mutations[position].collection.isOpen {
                append(PluginMutation(batch: batch, position: position))
            } else if batch.mutations[position].isCheckForAbsence {
                batch.outcomes[position] = .applied(replaced: false)
            }
        }
    }

    private mutating func append(_ entry: PluginMutation) {
        guard records != nil || entry.mutation.needsRecord else { return entries.append(entry) }
        let key = RecordKey(entry)
        if records == nil { records = Set(entries.map(RecordKey.init)) }
        if records?.insert(key).inserted == false {
            execute()
            records = [key]
        }
        entries.append(entry)
    }

    /// Makes the item of a mutation that depends on the current record; nil where that decides its outcome already.
    ///
    /// - Parameter record: the current one, nil in it where there is none; nil where it has not been read.
    private func resolved(
        _ entry: PluginMutation, of record: CurrentRecordReader.Record?? = nil
    ) -> PluginMutation? {
        let (mutation, batch) = (entry.mutation, entry.batch)
        do throws(CRUDError) {
            let record = try storage.currentRecord(of: mutation, in: batch, record)
            if let refusal = mutation.refusal(current: record?.revision, in: batch) {
                batch.outcomes[entry.position] = refusal
            } else if let transformation = mutation.transformation {
                var entry = entry
                entry.resolved = try batch.resolve(mutation, by: transformation, of: record, at: entry.position)
                return entry
            } else {
                batch.outcomes[entry.position] = .applied(replaced: false)
            }
        } catch {
            batch.outcomes[entry.position] = .refused(error)
            storage.noteIfCorrupt(mutation, in: batch, error)
        }
        return nil
    }

    // MARK: Executing

    /// Has the plugin apply what has joined, and delivers the batches that are complete.
    mutating func execute() {
        if records == nil { write(entries, attempt: 1) } else { resolveAndWrite() }
        for batch in batches { batch.finish() }
        entries.removeAll(keepingCapacity: true)
        batches.removeAll(keepingCapacity: true)
        records = nil
    }

    private func resolveAndWrite() {
        let found = storage.currentRecords(of: entries.map { $0.mutation.needsRecord ? $0 : nil })
        var resolved: [PluginMutation] = []
        var bytes = 0
        for (entry, record) in zip(entries, found) {
            guard entry.mutation.needsRecord else {
                resolved.append(entry)
                continue
            }
            guard let entry = self.resolved(entry, of: record) else { continue }
            resolved.append(entry)
            bytes += entry.resolved?.item.count ?? 0
            guard bytes > Self.maximumResolvedBytes else { continue }
            write(resolved, attempt: 1)
            (resolved, bytes) = ([], 0)
        }
        write(resolved, attempt: 1)
    }

    private func write(_ entries: [PluginMutation], attempt: Int) {
        guard !entries.isEmpty else { return }
        var outdated: [PluginMutation] = []
        for (entry, outcome) in zip(entries, storage.apply(entries[...])) {
            if entry.resolved != nil, outcome.isRefusal {
                outdated.append(entry)
            } else {
                entry.batch.outcomes[entry.position] = outcome
            }
        }
        if attempt < Self.maximumAttempts {
            write(outdated.compactMap { resolved($0) }, attempt: attempt + 1)
        } else {
            for entry in outdated { entry.batch.outcomes[entry.position] = .refused(.contended) }
        }
    }
}

extension Mutation {
    /// Whether the record has to be read before the plugin can be asked.
    fileprivate var needsRecord: Bool { transformation != nil || kind == .check }
}

extension MutationOutcome {
    /// Whether the mutation's precondition did not hold.
    var isRefusal: Bool {
        switch self {
        case .exists, .notFound, .mismatch: true
        case .applied, .failed, .refused: false
        }
    }

    /// Why the plugin could not be asked; nil where the reason may be this mutation alone.
    var commonFailure: CRUDError? {
        if case .refused(let error) = self, !error.mayConcernOneAlone { error } else { nil }
    }
}

extension CRUDError {
    /// Somebody else writes the same record all the time.
    static let contended = CRUDError(.unavailable, "another program keeps changing the record")
}

extension MutationBatch {
    /// Opens the collections that the mutations name. That one cannot be opened is the failure of its own mutations;
    /// the others may belong to other sessions.
    func openCollections(of positions: Range<Int>, with open: (Mutation) throws(CRUDError) -> Void) {
        for position in positions {
            do throws(CRUDError) { try open(mutations[position]) } catch { refusals[position] = error }
        }
    }
}
