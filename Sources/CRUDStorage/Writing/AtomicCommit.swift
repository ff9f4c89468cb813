import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// An atomic batch as one call of the plugin.
///
/// The plugin undoes all mutations after the first that fails. What only the host can decide is decided before: whether
/// a transformation makes an item of the current one, whether a collection exists at all, and which revision a record
/// has that must not exist. If the batch holds such a mutation it is run dry first: its mutations are evaluated in
/// order, each on the records as those before it leave them, until one fails. The plugin then checks every precondition
/// once more inside its transaction, so that somebody else who writes the same storage can make the call fail, in which
/// case it is retried, with the records locked as they are read where the plugin can, but not break the promise.
///
/// A dry run pauses where an item takes long to make, which another thread does then, and where it has taken long
/// itself. Other writes may come between. The plugin notices that, as above; and a dry run that fails fails for certain
/// only if no record that it has read has another revision by then. After some attempts there are no pauses.
struct AtomicCommit {
    /// What has come of a step.
    enum Step {
        /// The batch has its outcomes.
        case done
        case pauses
        /// The item is to be made, and given to ``made``, before the next step.
        case needs(LongWriteItem)
    }

    private let batch: MutationBatch
    private let storage: OpenStorage
    /// The records that mutations have touched so far; nil in it: removed.
    private var records: [RecordKey: CurrentRecordReader.Record?] = [:]
    /// Those that mutations depend on, as far as they have been read: each once, as mutations of one record are to find
    /// the same. By the position at which it was read, which ``readings`` tells.
    private var known: [CurrentRecordReader.Record??] = []
    /// For each record the position of the mutation by which it is read: one that needs its item, if there is one.
    private var readings: [RecordKey: Int] = [:]
    /// What transformations have made, by the position of their mutation.
    private var resolved: [Int: ResolvedPut] = [:]
    private var contention = Contention()
    /// The next mutation of the dry run; nil: it has to be begun.
    private var position: Int?
    /// The ``currentHandles`` when the dry run was begun.
    private var handles: [OpaquePointer?] = []
    /// The mutations for which a record was read, each with the revision of that.
    private var revisions: [(position: Int, revision: [UInt8]?)] = []
    private var hasPaused = false
    /// How many bytes have been transformed since the dry run began or paused.
    private var transformedBytes = 0
    /// How many bytes the batch had before the dry run.
    private var firstByte = 0
    /// The item that a step needs.
    var made: LongWriteItem?

    /// How many bytes are transformed without a pause: some 8 ms.
    private static let bytesWithoutPause = 256 << 10

    init(_ batch: MutationBatch, _ storage: OpenStorage) {
        self.batch = batch
        self.storage = storage
    }

    /// Has the plugin apply the batch, or takes the next step to that.
    mutating func advance() -> Step {
        while true {
            if position == nil { begin() }
            if needsDryRun {
                switch runDry() {
                case .paused(let item):
                    hasPaused = true
                    transformedBytes = 0
                    return item.map { .needs($0) } ?? .pauses
                case .failed(let failure) where !hasPaused || isUpToDate:
                    end(with: failure)
                    return .done
                case .failed: break
                case .succeeded: if write(needsDryRun: true) { return .done }
                }
            } else if write(needsDryRun: false) {
                return .done
            }
            guard restart() else {
                batch.failure = .contended
                return .done
            }
        }
    }

    private var needsDryRun: Bool { !batch.refusals.isEmpty || batch.mutations.contains(where: \.needsDryRun) }

    /// A mutation that fails, and how.
    private struct Failure {
        var position: Int
        var outcome: MutationOutcome
    }

    private func end(with failure: Failure) {
        // Nothing stays locked that is not written.
        if contention.isFound { storage.releaseSnapshot() }
        batch.outcomes =
            Array(repeating: .applied(replaced: false), count: failure.position) + [failure.outcome]
    }

    // MARK: The dry run

    private enum DryRun {
        case succeeded
        /// The first mutation that fails.
        case failed(Failure)
        /// It continues with the item, if there is one.
        case paused(LongWriteItem?)
    }

    private mutating func begin() {
        batch.refusals.removeAll()
        let refusal = storage.refusalToCreate(batch.mutations)
        batch.openCollections(of: batch.mutations.indices) { mutation throws(CRUDError) in
            guard let refusal else { return try storage.openForWriting(mutation) }
            try storage.openForClients(mutation.collection)
            if mutation.canCreate, !mutation.collection.isOpen { throw refusal }
        }
        handles = currentHandles
        records.removeAll()
        resolved.removeAll()
        revisions.removeAll()
        hasPaused = false
        transformedBytes = 0
        firstByte = batch.byteCount
        readings.removeAll()
        if needsDryRun { read() }
        position = 0
    }

    /// The handles of the mutations' collections, of those that may be written.
    private var currentHandles: [OpaquePointer?] {
        batch.mutations.map { $0.collection.isAdmitted ? $0.collection.handle : nil }
    }

    private mutating func read() {
        for (position, mutation) in batch.mutations.enumerated() {
            let key = RecordKey(mutation, in: batch)
            guard let first = readings[key] else {
                readings[key] = position
                continue
            }
            if batch.mutations[first].transformation == nil, mutation.transformation != nil { readings[key] = position }
        }
        let positions = Set(readings.values)
        known = storage.currentRecords(
            of: batch.pluginMutations.enumerated().map { positions.contains($0) ? $1 : nil },
            toWrite: contention.isFound)
    }

    /// Another write has come between; false if there is no further attempt.
    private mutating func restart() -> Bool {
        guard contention.pause(unless: batch.isAbandoned) else { return false }
        (position, made) = (nil, nil)
        resolved.removeAll()
        batch.removeBytes(from: firstByte)
        return true
    }

    /// Whether nothing that has been read has changed since.
    private var isUpToDate: Bool {
        guard handles == currentHandles else { return false }
        do throws(CRUDError) {
            for (position, revision) in revisions {
                let mutation = batch.mutations[position]
                let record = try storage.currentRecord(of: mutation, in: batch, nil, withItem: false)
                guard record?.revision == revision else { return false }
            }
            return true
        } catch {
            return false
        }
    }

    /// Evaluates the mutations in order.
    private mutating func runDry() -> DryRun {
        // A collection may have been dropped, or dropped and created, or be served from another place.
        guard !hasPaused || handles == currentHandles else {
            return .failed(Failure(position: 0, outcome: .notFound))
        }
        while let position, position < batch.mutations.count {
            guard mayBlock || transformedBytes < Self.bytesWithoutPause else { return .paused(nil) }
            do throws(CRUDError) {
                let result = try runDry(at: position)
                if case .needs(let item) = result { return .paused(item) }
                if case .fails(let outcome) = result {
                    return .failed(Failure(position: position, outcome: outcome))
                }
            } catch {
                storage.noteIfCorrupt(batch.mutations[position], in: batch, error)
                return .failed(Failure(position: position, outcome: .refused(error)))
            }
            self.position = position + 1
        }
        return .succeeded
    }

    /// Whether items that take long are made here.
    private var mayBlock: Bool { batch.session == nil || contention.attempt > LongWrite.attemptsElsewhere }

    private enum Evaluation {
        case succeeds
        case fails(MutationOutcome)
        case needs(LongWriteItem)
    }

    /// Evaluates a mutation.
    private mutating func runDry(at position: Int) throws(CRUDError) -> Evaluation {
        if let refusal = batch.refusals[position] { throw refusal }
        let mutation = batch.mutations[position]
        let key = RecordKey(mutation, in: batch)
        let record: CurrentRecordReader.Record?
        if let made {
            record = made.record
        } else if let touched = records[key] {
            record = touched
        } else {
            let reading = readings[key] ?? position
            record = try storage.currentRecord(of: batch.mutations[reading], in: batch, known[reading])
            records[key] = .some(record)
            revisions.append((reading, record?.revision))
        }
        if let refusal = mutation.refusal(current: record?.revision, in: batch) { return .fails(refusal) }
        switch mutation.kind {
        case .check, .setKeys: break
        case .remove:
            if record == nil { return .fails(.notFound) }
            records[key] = .some(nil)
        case .put:
            if let transformation = mutation.transformation {
                guard let item = try item(by: transformation, of: record) else {
                    return .needs(LongWriteItem(of: record, by: transformation, for: batch))
                }
                resolved[position] = batch.resolve(mutation, as: item, of: record, at: position)
            }
            records[key] = batch.record(after: mutation, resolved[position])
        }
        return .succeeds
    }

    /// The item of a put; nil: it is to be made elsewhere.
    private mutating func item(
        by transformation: any ItemTransformation, of record: CurrentRecordReader.Record?
    ) throws(CRUDError) -> TransformedItem? {
        if let made = made.take() { return try made.made() }
        guard mayBlock || !transformation.takesLong(of: record?.item) else { return nil }
        transformedBytes += transformation.byteCount + (record?.item.count ?? 0)
        var work = Work()
        return try transformation.transform(record?.item, &work)
    }

    // MARK: The call

    /// Has the plugin apply the batch, whose outcomes are then known; false if it has to be evaluated again.
    private func write(needsDryRun: Bool) -> Bool {
        do throws(CRUDError) {
            if let failure = try write() {
                guard !needsDryRun || !failure.outcome.isRefusal else { return false }
                end(with: failure)
            }
        } catch {
            batch.failure = error
        }
        return true
    }

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

extension OpenStorage {
    /// Why mutations must not create the collections that they would create; nil where they may, or create one at most,
    /// which is decided when it is opened.
    fileprivate func refusalToCreate(_ mutations: [Mutation]) -> CRUDError? {
        var created: [ObjectIdentifier: BackendCollection] = [:]
        for mutation in mutations where mutation.canCreate && !mutation.collection.isOpen {
            created[ObjectIdentifier(mutation.collection)] = mutation.collection
        }
        guard created.count > 1 else { return nil }
        return environment.creationCheck(Array(created.values), mutations.lazy.compactMap(\.creator).first)
    }
}

extension Mutation {
    fileprivate var needsDryRun: Bool {
        transformation != nil || !collection.isOpen || isCheckForAbsence
    }
}
