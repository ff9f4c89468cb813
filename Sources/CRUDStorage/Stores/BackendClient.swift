import CRUDPluginHost

/// One event loop's access to one backend: its store, the batches that it gathers in this iteration, and those that the
/// backend has not handed back.
package final class BackendClient {
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
    /// What comes before the batch of mutations that is being gathered.
    private var pending: [WorkItem] = []
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

    /// The batch of mutations of this iteration, to copy bytes into.
    package var pendingMutations: MutationBatch {
        if let mutations { return mutations }
        let batch = MutationBatch(deliver: deliver)
        mutations = batch
        return batch
    }

    /// Adds the mutation of a request, whose bytes stand in ``pendingMutations``.
    package func append(_ mutation: Mutation, for completion: any RequestCompletion) {
        let batch = pendingMutations
        batch.append(mutation)
        batch.append(completion, batch.mutations.count - 1..<batch.mutations.count)
    }

    /// Adds mutations of one request, whose bytes stand in ``pendingMutations``; they take effect in order.
    package func append(_ mutations: some Sequence<Mutation>, for completion: any RequestCompletion) {
        let batch = pendingMutations
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
        append(batch)
    }

    /// Submits mutations of one request some of whose items take long to make, behind those that have been added.
    ///
    /// - Parameters:
    ///   - batch: holds their bytes.
    ///   - collection: of the first.
    package func submit(
        long batch: MutationBatch, _ mutations: some Sequence<Mutation>, in collection: BackendCollection,
        for completion: any RequestCompletion
    ) {
        for mutation in mutations { batch.append(mutation) }
        let write = LongWrite(batch, in: collection, deliver: deliver)
        write.append(completion, 0..<batch.mutations.count)
        append(write)
    }

    /// Submits work of one request alone, behind the mutations that have been added: a search, a bulk delete or a
    /// rebuild of indexes.
    package func submit(_ item: WorkItem, for completion: any RequestCompletion) {
        item.append(completion, 0..<1)
        append(item)
    }

    private func append(_ item: WorkItem) {
        closeMutations()
        pending.append(item)
    }

    private func closeMutations() {
        if let mutations = mutations.take() { pending.append(mutations) }
    }

    /// Hands the backend what has been gathered; called at the end of an iteration.
    package func flush() {
        closeMutations()
        if !pending.isEmpty {
            let items = pending
            pending.removeAll(keepingCapacity: true)
            for item in items { begin(item) }
        }
        store.flush()
    }

    /// Whether nothing has been gathered or is in flight.
    package var isIdle: Bool { mutations == nil && pending.isEmpty && inFlight.isEmpty && !store.hasPendingReads }

    func begin(_ item: WorkItem) {
        inFlight.append(item)
        backend.submit(item)
    }

    /// Notes an item that goes another way than to the backend's queues.
    func track(_ item: WorkItem) { inFlight.append(item) }

    /// Notes an item of one request that goes another way than to the backend's queues.
    package func track(_ item: WorkItem, for completion: any RequestCompletion) {
        item.append(completion, 0..<1)
        track(item)
    }

    // MARK: Completing

    /// Replies to the requests of an item that has been handed back.
    package func complete(_ item: WorkItem) {
        guard let index = inFlight.firstIndex(where: { $0 === item }) else { return }
        inFlight.remove(at: index)
        // A thread of the backend may have seen a write that has not been acknowledged yet; whoever is told of it must
        // not be shown an older state by the loop.
        store.releaseSnapshot()
        item.complete()
    }

    /// Replies to requests whose time is over.
    package func expire(at now: Duration) {
        for item in inFlight where item.expireWaiters(at: now, backend: backend.name) {
            inFlight.removeAll { $0 === item }
            backend.remove(item)
        }
    }

    /// Fails the requests that search, as if their time were over.
    package func endSearches() {
        for item in inFlight
        where item is ReadTask && item.expireWaiters(at: .seconds(Int64.max), backend: backend.name) {
            inFlight.removeAll { $0 === item }
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
