import CRUDPluginHost

/// One event loop's access to one backend: its store, the batches that it gathers in this iteration, and those that the
/// backend has not handed back.
package final class BackendClient: WorkSubmitter {
    package let backend: Backend
    // The loop keeps its clients and outlives them.
    private unowned let loop: any LoopContext
    let loopNumber: Int
    /// Hands an item back to the loop.
    package let deliver: @Sendable (WorkItem) -> Void
    /// How collections of the backend are read.
    package private(set) lazy var store = makeStore()
    // Used by the loop's thread alone, at no time by two functions.
    @exclusivity(unchecked) private var mutations: MutationBatch?
    /// The batches of this iteration that belong to single sessions. Those sessions' mutations in ``mutations`` are
    /// before them.
    private var ownMutations: [MutationBatch] = []
    /// How many batches of its own a session has, in flight and of this iteration.
    private var ownBatches: [Int: Int] = [:]
    /// What comes before the batch of mutations that is being gathered.
    private var pending: [BackendWork] = []
    private var inFlight: [WorkItem] = []

    package init(_ backend: Backend, loop: any LoopContext) {
        self.backend = backend
        self.loop = loop
        loopNumber = loop.number
        deliver = loop.deliver
    }

    private func makeStore() -> Store {
        if backend.plugin.isChild { return ChannelStore(self, loop: loop) }
        return backend.loopReaderCount > 0 ? LoopStore(self, loop: loop) : Store(self, loop: loop)
    }

    // MARK: Submitting

    /// The batch that mutations of a session join in this iteration, to copy bytes into.
    ///
    /// A session's mutations are in batches of its own from the first that has a transformation until all those are
    /// done: the backend may take longer for them than for others', and executes them in their order.
    ///
    /// - Parameter transforms: whether one of the mutations has a transformation.
    package func pendingMutations(of session: Int, transforms: Bool) -> MutationBatch {
        guard transforms || (!ownBatches.isEmpty && ownBatches[session] != nil) else { return sharedMutations }
        if let batch = ownMutations.last(where: { $0.session == session }) { return batch }
        let batch = MutationBatch(of: session, deliver: deliver)
        ownMutations.append(batch)
        ownBatches[session, default: 0] += 1
        return batch
    }

    private var sharedMutations: MutationBatch {
        if let mutations { return mutations }
        let batch = MutationBatch(deliver: deliver)
        mutations = batch
        return batch
    }

    /// Adds the mutation of a request.
    ///
    /// - Parameter batch: has its bytes, see ``pendingMutations(of:transforms:)``.
    package func append(_ mutation: Mutation, to batch: MutationBatch, for completion: any RequestCompletion) {
        batch.append(mutation)
        batch.append(completion, batch.mutations.count - 1..<batch.mutations.count)
    }

    /// Adds mutations of one request; they take effect in order.
    ///
    /// - Parameter batch: has their bytes, see ``pendingMutations(of:transforms:)``.
    package func append(
        _ mutations: some Sequence<Mutation>, to batch: MutationBatch, for completion: any RequestCompletion
    ) {
        let start = batch.mutations.count
        for mutation in mutations { batch.append(mutation) }
        batch.append(completion, start..<batch.mutations.count)
    }

    /// Submits an atomic batch of one request, behind the mutations that have been added.
    package func submit(
        atomic batch: MutationBatch, _ mutations: some Sequence<Mutation>, for completion: any RequestCompletion
    ) {
        for mutation in mutations { batch.append(mutation) }
        batch.append(completion, 0..<batch.mutations.count)
        if let session = batch.session { ownBatches[session, default: 0] += 1 }
        append(.write(batch))
    }

    /// Submits a search of one request, behind the mutations that have been added.
    package func submit(_ task: ReadTask, for completion: any RequestCompletion) {
        submit(.read(.task(task)), for: completion)
    }

    /// Submits a bulk delete of one request, behind the mutations that have been added.
    package func submit(_ task: WriteTask, for completion: any RequestCompletion) {
        submit(.bulkWrite(task), for: completion)
    }

    /// Submits a rebuild of indexes, behind the mutations that have been added.
    package func submit(_ request: ReindexRequest, for completion: any RequestCompletion) {
        submit(.reindex(request), for: completion)
    }

    private func submit(_ work: BackendWork, for completion: any RequestCompletion) {
        work.item.append(completion, 0..<1)
        append(work)
    }

    private func append(_ work: BackendWork) {
        closeMutations()
        pending.append(work)
    }

    private func closeMutations() {
        if let mutations = mutations.take() { pending.append(.write(mutations)) }
        guard !ownMutations.isEmpty else { return }
        for batch in ownMutations { pending.append(.write(batch)) }
        ownMutations.removeAll(keepingCapacity: true)
    }

    /// Hands the backend what has been gathered; called at the end of an iteration.
    package func flush() {
        closeMutations()
        if !pending.isEmpty {
            let gathered = pending
            pending.removeAll(keepingCapacity: true)
            for work in gathered { begin(work) }
        }
        store.flush()
    }

    /// Whether nothing has been gathered or is in flight.
    package var isIdle: Bool {
        mutations == nil && ownMutations.isEmpty && pending.isEmpty && inFlight.isEmpty && !store.hasPendingReads
    }

    func begin(_ work: BackendWork) {
        track(work.item)
        backend.submit(work)
    }

    /// Notes an item as being in flight.
    func track(_ item: WorkItem) {
        item.submitter = self
        inFlight.append(item)
    }

    private func forget(_ item: WorkItem) {
        item.submitter = nil
        inFlight.removeAll { $0 === item }
        noteEnd(of: item)
    }

    /// Notes an item of one request that goes another way than to the backend's queues.
    package func track(_ item: WorkItem, for completion: any RequestCompletion) {
        item.append(completion, 0..<1)
        track(item)
    }

    // MARK: Completing

    /// Replies to the requests of an item that has been handed back.
    package func complete(_ item: WorkItem) {
        guard item.submitter === self else { return }
        forget(item)
        // A thread of the backend may have seen a write that has not been acknowledged yet; whoever is told of it must
        // not be shown an older state by the loop.
        store.releaseSnapshot()
        item.complete()
    }

    /// Replies to requests whose time is over.
    package func expire(at now: Duration) {
        for item in inFlight where item.expireWaiters(at: now, backend: backend.name) {
            forget(item)
            backend.remove(item)
        }
    }

    private func noteEnd(of item: WorkItem) {
        guard let session = item.owner, let count = ownBatches[session] else { return }
        ownBatches[session] = count > 1 ? count - 1 : nil
    }

    /// Fails the requests that search, as if their time were over.
    package func endSearches() {
        for item in inFlight
        where item.isSearch && item.expireWaiters(at: .seconds(Int64.max), backend: backend.name) {
            forget(item)
            backend.remove(item)
        }
    }

    // MARK: Reloads

    /// Hands over what has been gathered and lets the backend be closed; ``isQuiescent`` says when.
    package func quiesce() {
        flush()
        store.quiesce()
    }

    /// Whether nothing is outstanding that the backend's own queues do not know of.
    package var isQuiescent: Bool { store.isQuiescent }
}
