import CRUDJSON
import CRUDModel
import CRUDPluginCalls
import CRUDQuery

/// Mutations of one session of which some have items that take long to make: those that a commit has deferred, atomic
/// batches with such items, and what the session has sent behind them, in their order.
///
/// Another thread makes such an item. The writer reads the current record before, does everything else meanwhile, and
/// stores the item on condition that the record still has the revision that was read. Where another write has come
/// between, it begins again, as long as a request waits for it; after some attempts it makes the item itself, so that
/// only another program can come between. What does not take long is executed as by a ``GroupCommit``.
final class LongWrite: WriteTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// The session whose mutations they are.
    override var owner: Int? { session }
    private let session: Int
    private let schedule: LongItemSchedule
    /// Those that have no outcome yet, in order; the first has been claimed where `progress` is not nil.
    private var batches: [MutationBatch] = []
    private var progress: Progress?
    private var making: (item: LongWriteItem, job: LongRecordJob)?
    /// What it waits for before it can make its next item.
    private var wanted: LongItemSchedule.Reservation?
    /// What it has reserved.
    private var reserved: LongItemSchedule.Reservation?

    /// How far the first batch is.
    fileprivate enum Progress {
        /// The positions of the mutations without outcome, and which attempt at the first is due; nil: it is not known
        /// whether it takes long.
        case mutations(ArraySlice<Int>, attempt: Int?)
        case atomic(AtomicCommit)
    }

    /// How often another thread makes an item.
    static let attemptsElsewhere = 3

    /// - Parameter batch: its first batch, which has mutations.
    init(_ batch: MutationBatch, of session: Int, _ schedule: LongItemSchedule) {
        self.session = session
        self.schedule = schedule
        super.init(on: batch.mutations[0].collection) { _ in }
    }

    // MARK: Joining

    /// Adds a batch that has not been claimed.
    func append(_ batch: MutationBatch) { batches.append(batch) }

    /// Adds a batch of which a commit has executed all but the deferred mutations, and has tried the first of those.
    func append(deferred batch: MutationBatch) {
        if batches.isEmpty { progress = Progress(deferredOf: batch) }
        batches.append(batch)
    }

    /// Adds an atomic batch that has been begun.
    ///
    /// - Parameter item: the next that it needs.
    func append(_ commit: AtomicCommit, of batch: MutationBatch) {
        progress = .atomic(commit)
        batches.append(batch)
    }

    override func writes(_ key: BackendCollection.Key) -> Bool {
        batches.contains { $0.mutations.contains { $0.collection.key == key } }
    }

    // MARK: Executing

    override var isWaiting: Bool {
        guard batches.first?.isAbandoned == false else { return false }
        if let making { return making.job.isPending() }
        return wanted.map { !schedule.admits($0) } ?? false
    }

    /// Executes the next mutations up to one whose item takes long, reads the record for that, or stores it.
    override func advance(with storage: OpenStorage) -> Bool {
        defer { storage.releaseSnapshot() }
        guard let batch = batches.first else { return true }
        if progress == nil, !begin(batch, storage) {
            batches.removeFirst()
        } else if batch.isAbandoned {
            end(batch, CRUDError(.outcomeUnknown, "no request waited for the write any more"))
        } else if advance(batch, storage) {
            finishFirst()
        }
        return batches.isEmpty
    }

    /// Begins with a batch; false if its loop has withdrawn it.
    private func begin(_ batch: MutationBatch, _ storage: OpenStorage) -> Bool {
        // A commit has claimed it before it deferred its mutations.
        guard batch.deferred.isEmpty else {
            progress = Progress(deferredOf: batch)
            return true
        }
        guard batch.claim() else { return false }
        if batch.isAtomic {
            progress = .atomic(AtomicCommit(batch, storage))
        } else {
            batch.outcomes = Array(repeating: .notFound, count: batch.mutations.count)
            progress = .mutations(Array(batch.mutations.indices)[...], attempt: nil)
        }
        return true
    }

    /// Whether the batch is done.
    private func advance(_ batch: MutationBatch, _ storage: OpenStorage) -> Bool {
        switch progress {
        case .mutations(let positions, let attempt):
            guard let position = positions.first else { return true }
            if let item = making.take()?.item {
                store(item, position, attempt ?? 1, batch, storage)
            } else if let attempt {
                make(position, attempt, batch, storage)
            } else {
                executeShort(positions, batch, storage)
            }
            if case .mutations(let rest, _) = progress { return rest.isEmpty }
            return false
        case .atomic(let commit): return advance(commit, storage)
        case nil: return false
        }
    }

    /// Executes what does not take long.
    private func executeShort(_ positions: ArraySlice<Int>, _ batch: MutationBatch, _ storage: OpenStorage) {
        for position in positions { batch.openCollections(of: position..<position + 1, with: storage.openForWriting) }
        var commit = GroupCommit(storage)
        commit.append(batch, at: positions)
        commit.execute()
        progress = Progress(deferredOf: batch)
    }

    /// Takes the next step of an atomic batch; true if it is done.
    private func advance(_ commit: AtomicCommit, _ storage: OpenStorage) -> Bool {
        var commit = commit
        if let item = making.take()?.item { commit.made = item }
        // Before the records are read: another one that makes items would change them meanwhile.
        guard reserve(.atomicBatch) else { return false }
        let step = commit.advance()
        progress = .atomic(commit)
        switch step {
        case .done: return true
        case .pauses: break
        case .needs(let item): makeElsewhere(item)
        }
        return false
    }

    // MARK: A long item

    private func make(_ position: Int, _ attempt: Int, _ batch: MutationBatch, _ storage: OpenStorage) {
        let mutation = batch.mutations[position]
        do throws(CRUDError) {
            try storage.openForWriting(mutation)
            guard mutation.collection.isOpen else { return end(position, .notFound, batch) }
            // Others do not take long.
            guard let transformation = mutation.transformation else { return end(position, .notFound, batch) }
            guard reserve(.record(RecordKey(mutation, in: batch))) else { return }
            Contention.pause(before: attempt)
            let isMadeHere = attempt > Self.attemptsElsewhere
            let record = try storage.currentRecord(of: mutation, in: batch, nil, toWrite: isMadeHere)
            if let refusal = mutation.refusal(current: record?.revision, in: batch) {
                return end(position, refusal, batch)
            }
            let item = LongWriteItem(of: record, by: transformation, for: batch)
            guard isMadeHere else { return makeElsewhere(item) }
            item.make()
            store(item, position, attempt, batch, storage)
        } catch {
            refuse(error, position, batch, storage)
        }
    }

    private func makeElsewhere(_ item: LongWriteItem) {
        making = (item, LongRecordJob(by: LongRecordThreads.writing) { item.make(yield: $0) })
    }

    private func store(
        _ item: LongWriteItem, _ position: Int, _ attempt: Int, _ batch: MutationBatch, _ storage: OpenStorage
    ) {
        let mutation = batch.mutations[position]
        let end = batch.byteCount
        do throws(CRUDError) {
            let resolved = batch.resolve(mutation, as: try item.made(), of: item.record, at: position)
            // The collection may have been dropped meanwhile, or be served from another place.
            guard mutation.collection.isOpen else { return self.end(position, .notFound, batch) }
            try storage.openForWriting(mutation)
            let outcome = storage.apply([PluginMutation(batch: batch, position: position, resolved: resolved)])[0]
            guard outcome.isRefusal else { return self.end(position, outcome, batch) }
            batch.removeBytes(from: end)
            progress = progress?.trying(attempt + 1)
        } catch {
            refuse(error, position, batch, storage)
        }
    }

    private func reserve(_ reservation: LongItemSchedule.Reservation) -> Bool {
        guard reserved != reservation else { return true }
        wanted = schedule.reserve(reservation) ? nil : reservation
        if wanted == nil { reserved = reservation }
        return wanted == nil
    }

    private func release() {
        if let reserved { schedule.release(reserved) }
        (reserved, wanted) = (nil, nil)
    }

    // MARK: Ending

    private func refuse(_ error: CRUDError, _ position: Int, _ batch: MutationBatch, _ storage: OpenStorage) {
        storage.noteIfCorrupt(batch.mutations[position], in: batch, error)
        end(position, .refused(error), batch)
    }

    private func end(_ position: Int, _ outcome: MutationOutcome, _ batch: MutationBatch) {
        batch.outcomes[position] = outcome
        if case .mutations(let positions, _) = progress { progress = .mutations(positions.dropFirst(), attempt: nil) }
        release()
    }

    /// Ends the first batch, which has been claimed: what has no outcome has failed.
    private func end(_ batch: MutationBatch, _ error: CRUDError) {
        if case .mutations(let positions, _) = progress {
            for position in positions { batch.outcomes[position] = .refused(error) }
        } else {
            batch.failure = error
        }
        finishFirst()
    }

    private func finishFirst() {
        release()
        (progress, making) = (nil, nil)
        batches.removeFirst().finish()
    }

    override func fail(_ error: CRUDError) {
        while let batch = batches.first {
            if progress == nil, batch.deferred.isEmpty {
                guard batch.claim() else {
                    batches.removeFirst()
                    continue
                }
                batch.failure = error
                finishFirst()
            } else {
                if progress == nil { progress = Progress(deferredOf: batch) }
                end(batch, error)
            }
        }
    }
}

extension LongWrite.Progress {
    /// - Parameter batch: has mutations that a commit has deferred.
    fileprivate init(deferredOf batch: MutationBatch) {
        let positions = batch.deferred.sorted()
        self = .mutations(positions[...], attempt: positions.first == batch.longPosition ? 1 : nil)
        batch.deferred.removeAll()
        batch.longPosition = nil
    }

    fileprivate func trying(_ attempt: Int) -> Self {
        if case .mutations(let positions, _) = self { .mutations(positions, attempt: attempt) } else { self }
    }
}

/// An item that another thread makes of the current record. It outlives its write where that ends early.
final class LongWriteItem: @unchecked Sendable {
    // @unchecked: the thread that makes the item writes `result`; the writer reads it when that thread is done.

    let record: CurrentRecordReader.Record?
    private let transformation: any ItemTransformation
    private let batch: MutationBatch
    private var result: Result<TransformedItem, CRUDError>?

    /// - Parameter batch: for which it is made: while that is wanted.
    init(
        of record: CurrentRecordReader.Record?, by transformation: any ItemTransformation, for batch: MutationBatch
    ) {
        self.record = record
        self.transformation = transformation
        self.batch = batch
    }

    /// - Parameter yield: called once in a few milliseconds.
    func make(yield: @escaping () -> Void = {}) {
        let batch = batch
        var work = Work {
            yield()
            return batch.isAbandoned
        }
        do throws(CRUDError) {
            result = .success(try transformation.transform(record?.item, &work))
        } catch {
            result = .failure(error)
        }
    }

    func made() throws(CRUDError) -> TransformedItem {
        guard let result else { throw CRUDError(.internalError, "the item was not made") }
        return try result.get()
    }
}
