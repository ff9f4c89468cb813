import CRUDModel
import CRUDPluginHost
import CRUDThreads

/// Mutations of any number of batches as one call of the plugin, which a plugin with transactions makes one commit.
///
/// **Transformations.** A mutation that makes its item from the current one is written on condition that the record
/// still has the revision that was read. The records that such mutations need are read together, in one call, when the
/// commit is executed: one round trip to a server. This thread is the backend's only writer, so that the condition
/// fails only where another program writes the same storage; then the mutation is retried, and its record is locked as
/// it is read, where the plugin can: the daemon that has waited longest is next.
///
/// **Several of one record** are made one from the other, each on condition that the record has the revision of the one
/// before: many clients that increment one counter share one commit. Only an item that has been made is written with
/// them. That a mutation is refused is certain only when those before it are: it and all later ones of its record are
/// evaluated again after the call. So are all that follow one whose condition failed, in their order.
///
/// Any other mutation of a record that the commit has transformed, and a transformation of one that it has changed
/// otherwise, begin the next commit.
///
/// **What takes long** is deferred: a transformation of a long item, one for which the commit has no time left, and all
/// later mutations of the same session. A ``LongWrite`` executes those.
struct GroupCommit {
    private let storage: OpenStorage
    private var entries: [PluginMutation] = []
    /// Batches that are complete when the commit is.
    private var batches: [MutationBatch] = []
    /// Whether the record has been transformed, of each record of the commit; nil: it has no mutation that needs one.
    private var records: [RecordKey: Bool]?
    private var deferral = Deferral()
    /// Batches with mutations that are deferred, in order.
    private var deferredBatches: [MutationBatch] = []

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
        for position in positions { append(batch, position) }
    }

    /// Adds some of a batch's mutations, by their positions in order; as of ``append(_:_:)``.
    mutating func append(_ batch: MutationBatch, at positions: ArraySlice<Int>) {
        for position in positions { append(batch, position) }
    }

    private mutating func append(_ batch: MutationBatch, _ position: Int) {
        if let refusal = batch.refusals[position] {
            batch.outcomes[position] = .refused(refusal)
        } else if batch.mutations[position].collection.isOpen {
            append(PluginMutation(batch: batch, position: position))
        } else if batch.mutations[position].isCheckForAbsence {
            batch.outcomes[position] = .applied(replaced: false)
        }
    }

    private mutating func append(_ entry: PluginMutation) {
        guard !deferral.defers(entry, hasJoined: false) else { return }
        guard records != nil || entry.mutation.needsRecord else { return entries.append(entry) }
        let key = RecordKey(entry)
        let transforms = entry.mutation.transformation != nil
        if records == nil {
            records = Dictionary(entries.map { (RecordKey($0), false) }, uniquingKeysWith: { $1 })
        }
        if let isTransformed = records?[key], !(isTransformed && transforms) {
            execute()
            records = [:]
        }
        records?[key] = transforms
        entries.append(entry)
    }

    // MARK: Executing

    /// Has the plugin apply what has joined, and delivers the batches that are complete.
    mutating func execute() {
        if records == nil { writeAll() } else { resolveAndWriteAll() }
        for batch in batches {
            if batch.deferred.isEmpty { batch.finish() } else { deferredBatches.append(batch) }
        }
        entries.removeAll(keepingCapacity: true)
        batches.removeAll(keepingCapacity: true)
        records = nil
    }

    /// Takes out the batches that are not complete, with their deferred mutations, in order.
    mutating func takeDeferred() -> [MutationBatch] {
        defer {
            deferredBatches.removeAll()
            deferral.forgetSessions()
        }
        return deferredBatches
    }

    private func writeAll() {
        for (entry, outcome) in zip(entries, storage.apply(entries[...])) {
            entry.batch.outcomes[entry.position] = outcome
        }
    }

    private mutating func resolveAndWriteAll() {
        var pending = entries
        var contention = Contention()
        while !pending.isEmpty {
            var pass = GroupCommitPass(
                pending, storage, deferral, maximumResolvedBytes: Self.maximumResolvedBytes,
                locks: contention.isFound)
            pass.execute()
            deferral = pass.deferral
            pending = pass.undecided
            let isAbandoned = pending.allSatisfy { $0.batch.isAbandoned }
            if pass.isContended, !pending.isEmpty, !contention.pause(unless: isAbandoned) { break }
        }
        // Nothing stays locked that is not written.
        if contention.isFound { storage.releaseSnapshot() }
        for entry in pending { entry.batch.outcomes[entry.position] = .refused(.contended) }
    }
}

/// Which mutations of a commit are deferred.
private struct Deferral {
    /// Sessions with mutations that are: what they add is, too.
    private var sessions: Set<Int> = []
    /// Those of them with mutations that have joined the commit and are deferred all the same, so that all that have
    /// joined behind those are, too.
    private var joinedSessions: Set<Int> = []
    /// How many bytes have been transformed so far.
    private var transformedBytes = 0

    /// How many bytes a commit transforms: some 30 ms.
    private static let maximumTransformedBytes = 1 << 20
    /// A record that is only read takes so much less time than one that is transformed.
    private static let readsPerTransformation = 8

    /// Defers a mutation that is behind such a one of its session, or takes long whatever the current item is.
    ///
    /// - Parameter hasJoined: whether it has joined the commit.
    mutating func defers(_ entry: PluginMutation, hasJoined: Bool) -> Bool {
        guard let session = entry.batch.session else { return false }
        var isLong = false
        if !(hasJoined ? joinedSessions : sessions).contains(session) {
            guard let transformation = entry.mutation.transformation else { return false }
            isLong = transformation.takesLong(of: nil)
            guard isLong || transformedBytes > Self.maximumTransformedBytes else { return false }
        }
        append(entry, of: session, isLong: isLong)
        if hasJoined { joinedSessions.insert(session) }
        return true
    }

    /// Defers a transformation that takes long with the current item, else counts it.
    mutating func defers(_ entry: PluginMutation, _ transformation: any ItemTransformation, of item: [UInt8]?) -> Bool {
        guard let session = entry.batch.session else { return false }
        let isLong = transformation.takesLong(of: item)
        transformedBytes += (transformation.byteCount + (item?.count ?? 0)) / (isLong ? Self.readsPerTransformation : 1)
        if isLong {
            append(entry, of: session, isLong: true)
            joinedSessions.insert(session)
        }
        return isLong
    }

    mutating func forgetSessions() {
        sessions.removeAll()
        joinedSessions.removeAll()
    }

    private mutating func append(_ entry: PluginMutation, of session: Int, isLong: Bool) {
        if isLong { entry.batch.longPosition = entry.position }
        sessions.insert(session)
        entry.batch.deferred.append(entry.position)
    }
}

/// One attempt to evaluate and write the mutations of a commit, of which some need the current record.
private struct GroupCommitPass {
    /// What is known of a record.
    private enum RecordState {
        /// It is stored so; nil: there is none.
        case read(CurrentRecordReader.Record?)
        /// A mutation of this pass makes it so, unless that fails.
        case made(CurrentRecordReader.Record)
        /// A mutation of it has to be evaluated again, and so all that follow.
        case unknown
    }

    private let entries: [PluginMutation]
    private let storage: OpenStorage
    private let maximumResolvedBytes: Int
    /// Whether records are locked as they are read.
    private let locks: Bool
    private(set) var deferral: Deferral
    private var states: [RecordKey: RecordState] = [:]
    /// Those that have to be evaluated again, by position in `entries`.
    private var isUndecided: [Bool]
    /// Those to write next, in order, and how many bytes transformations have made for them.
    private var unwritten: [(position: Int, entry: PluginMutation)] = []
    private var bytes = 0
    /// Whether a record was changed by another program after it was read.
    private(set) var isContended = false

    init(
        _ entries: [PluginMutation], _ storage: OpenStorage, _ deferral: Deferral, maximumResolvedBytes: Int,
        locks: Bool
    ) {
        self.entries = entries
        self.storage = storage
        self.deferral = deferral
        self.maximumResolvedBytes = maximumResolvedBytes
        self.locks = locks
        isUndecided = Array(repeating: false, count: entries.count)
    }

    /// The mutations that have no outcome yet, in order.
    var undecided: [PluginMutation] { zip(entries, isUndecided).compactMap { $1 ? $0 : nil } }

    mutating func execute() {
        let keys = entries.map { $0.mutation.needsRecord ? RecordKey($0) : nil }
        var seen: Set<RecordKey> = []
        let found = storage.currentRecords(
            of: zip(entries, keys).map { entry, key in key.map { seen.insert($0).inserted } == true ? entry : nil },
            toWrite: locks)
        for position in entries.indices where !deferral.defers(entries[position], hasJoined: true) {
            guard let key = keys[position] else {
                unwritten.append((position, entries[position]))
                continue
            }
            evaluate(position, key, found[position])
            if bytes > maximumResolvedBytes { write() }
        }
        write()
    }

    /// Decides the outcome of a mutation that needs the current record, or adds it to those that are written.
    ///
    /// - Parameter found: the current record, nil in it where there is none; nil where it has not been read.
    private mutating func evaluate(_ position: Int, _ key: RecordKey, _ found: CurrentRecordReader.Record??) {
        let entry = entries[position]
        let (mutation, batch) = (entry.mutation, entry.batch)
        let record: CurrentRecordReader.Record?
        var isCertain = true
        do throws(CRUDError) {
            switch states[key] {
            case .read(let read): record = read
            case .made(let made): (record, isCertain) = (made, false)
            case .unknown:
                isUndecided[position] = true
                return
            case nil:
                record = try storage.currentRecord(of: mutation, in: batch, found)
                states[key] = .read(record)
            }
            if let transformation = mutation.transformation, deferral.defers(entry, transformation, of: record?.item) {
                return
            }
            if let refusal = mutation.refusal(current: record?.revision, in: batch) {
                decide(position, key, refusal, isCertain)
            } else if let transformation = mutation.transformation {
                let resolved = try batch.resolve(mutation, by: transformation, of: record, at: entry.position)
                states[key] = .made(batch.record(after: mutation, resolved))
                unwritten.append(
                    (position, PluginMutation(batch: batch, position: entry.position, resolved: resolved)))
                bytes += resolved.item.count
            } else {
                decide(position, key, .applied(replaced: false), isCertain)
            }
        } catch {
            if isCertain { storage.noteIfCorrupt(mutation, in: batch, error) }
            decide(position, key, .refused(error), isCertain)
        }
    }

    private mutating func decide(_ position: Int, _ key: RecordKey, _ outcome: MutationOutcome, _ isCertain: Bool) {
        if isCertain {
            entries[position].batch.outcomes[entries[position].position] = outcome
        } else {
            states[key] = .unknown
            isUndecided[position] = true
        }
    }

    private mutating func write() {
        for ((position, entry), outcome) in zip(unwritten, storage.apply(unwritten.map(\.entry)[...])) {
            if entry.resolved != nil, outcome.isRefusal {
                isUndecided[position] = true
                isContended = true
            } else {
                entry.batch.outcomes[entry.position] = outcome
            }
        }
        unwritten.removeAll(keepingCapacity: true)
        bytes = 0
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

extension MutationBatch {
    /// Opens the collections that the mutations name. That one cannot be opened is the failure of its own mutations;
    /// the others may belong to other sessions.
    func openCollections(of positions: Range<Int>, with open: (Mutation) throws(CRUDError) -> Void) {
        for position in positions {
            do throws(CRUDError) { try open(mutations[position]) } catch { refusals[position] = error }
        }
    }
}
