import CRUDModel
import CRUDPluginABI

/// Mutations of any number of batches on their way to the plugin as one call, which a plugin with transactions makes one
/// commit.
///
/// **Transformations.** A mutation that makes its item from the current one reads that when it joins the run, and is
/// written on condition that the record still has the revision that was read. This thread is the backend's only writer,
/// so that the condition fails only where somebody else writes the same storage; then it is read and made anew. That
/// presumes that nothing else in the run is about the same record: what would be, ends the run before it.
struct WriteRun {
    /// A mutation that the plugin is going to be asked about.
    private struct Entry {
        let batch: MutationBatch
        let index: Int
        /// Of a transformation: what came of it.
        var made: MadePut?

        var mutation: Mutation { batch.mutations[index] }
    }

    private let writer: BackendWriter
    private var entries: [Entry] = []
    /// Batches that are settled when the run is.
    private var batches: [MutationBatch] = []
    /// The records of the run, as soon as a transformation is among its mutations.
    private var records: Set<RecordKey>?
    private var madeBytes = 0

    /// How often a transformation is tried against somebody else's writes.
    static let maximumAttempts = 10
    /// How many bytes transformations may make before the run is carried out.
    private static let maximumMadeBytes = 8 << 20

    init(_ writer: BackendWriter) {
        self.writer = writer
    }

    // MARK: Joining

    mutating func append(_ batch: MutationBatch) {
        // A mutation of a collection that is not there is one of a record that is not there.
        batch.outcomes = Array(repeating: .notFound, count: batch.mutations.count)
        for index in batch.mutations.indices {
            if let refusal = batch.refusals[index] {
                batch.outcomes[index] = .refused(refusal)
            } else if batch.mutations[index].collection.isOpen {
                append(Entry(batch: batch, index: index))
            }
        }
        batches.append(batch)
    }

    private mutating func append(_ entry: Entry) {
        let mutation = entry.mutation
        guard records != nil || mutation.needsRecord else { return entries.append(entry) }
        let key = RecordKey(mutation, in: entry.batch)
        var records = self.records ?? Set(entries.map { RecordKey($0.mutation, in: $0.batch) })
        if !records.insert(key).inserted || madeBytes > Self.maximumMadeBytes {
            carryOut()
            records = [key]
        }
        guard mutation.needsRecord else {
            self.records = records
            return entries.append(entry)
        }
        if let entry = prepared(entry) {
            self.records = records
            entries.append(entry)
            madeBytes += entry.made?.item.count ?? 0
        }
    }

    /// Reads what a mutation depends on. Where that settles it already the answer is nil.
    private func prepared(_ entry: Entry) -> Entry? {
        do throws(CRUDError) {
            switch try writer.prepare(entry.mutation, at: entry.index, in: entry.batch) {
            case .settled(let outcome): entry.batch.outcomes[entry.index] = outcome
            case .put(let made): return Entry(batch: entry.batch, index: entry.index, made: made)
            }
        } catch {
            entry.batch.outcomes[entry.index] = .refused(error)
        }
        return nil
    }

    // MARK: Carrying out

    /// Has the plugin carry out what has joined, and delivers the batches that are settled.
    mutating func carryOut() {
        carryOut(entries, attempt: 1)
        for batch in batches { batch.finish() }
        entries.removeAll(keepingCapacity: true)
        batches.removeAll(keepingCapacity: true)
        records = nil
        madeBytes = 0
    }

    private func carryOut(_ entries: [Entry], attempt: Int) {
        guard !entries.isEmpty else { return }
        let mutations = entries.map { crudd_mutation($0.mutation, in: $0.batch, made: $0.made) }
        let outcomes: [crudd_outcome]
        do throws(CRUDError) {
            outcomes = try writer.write(mutations)
        } catch {
            return fail(entries, error, attempt)
        }
        var outdated: [Entry] = []
        for (entry, outcome) in zip(entries, outcomes) {
            let outcome = MutationOutcome(outcome)
            if entry.made != nil, outcome.isRefusal {
                outdated.append(entry)
            } else {
                entry.batch.outcomes[entry.index] = outcome
            }
        }
        if attempt < Self.maximumAttempts {
            carryOut(outdated.compactMap(prepared), attempt: attempt + 1)
        } else {
            for entry in outdated { entry.batch.outcomes[entry.index] = .refused(.contended) }
        }
    }

    /// The call has failed and nothing was applied, or nobody knows. What may be the fault of one batch alone is not made
    /// that of the others: they are tried one by one.
    private func fail(_ entries: [Entry], _ error: CRUDError, _ attempt: Int) {
        let mayBeOneAlone = [.corrupt, .internalError, .unsupported].contains(error.code)
        var rest = entries[...]
        while let batch = rest.first?.batch {
            let own = rest.prefix { $0.batch === batch }
            rest = rest.dropFirst(own.count)
            if mayBeOneAlone, own.count < entries.count {
                carryOut(Array(own), attempt: attempt)
            } else if own.count == batch.mutations.count {
                batch.failure = error
            } else {
                for entry in own { batch.outcomes[entry.index] = .refused(error) }
            }
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
}

extension CRUDError {
    /// Somebody else writes the same record all the time.
    static let contended = CRUDError(.unavailable, "the record keeps being changed by somebody else")
}

extension MutationBatch {
    /// Opens the collections that the mutations name. That one cannot be opened is the failure of its own mutations;
    /// the others may be other sessions'.
    func openCollections(with open: (Mutation) throws(CRUDError) -> Void) {
        for (index, mutation) in mutations.enumerated() {
            do throws(CRUDError) { try open(mutation) } catch { refusals[index] = error }
        }
    }
}
