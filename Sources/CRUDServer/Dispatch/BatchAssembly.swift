import CRUDPluginHost

/// The batches that one event loop is filling in this turn for one backend.
struct BatchAssembly {
    let backend: Backend
    /// What comes before the batch of mutations that is being filled.
    private var submissions: [Submission] = []
    private var mutations: MutationBatch?
    private var mutationContexts: [RequestContext] = []
    private var reads: ReadBatch?
    private var readContexts: [RequestContext] = []

    init(backend: Backend) {
        self.backend = backend
    }

    var isEmpty: Bool { submissions.isEmpty && mutations == nil && reads == nil }

    /// The batch of mutations of this turn.
    mutating func mutationBatch(_ mailbox: Mailbox) -> MutationBatch {
        if let mutations { return mutations }
        let batch = MutationBatch { mailbox.post(.completed($0)) }
        mutations = batch
        return batch
    }

    /// The batch of reads of this turn.
    mutating func readBatch(_ mailbox: Mailbox) -> ReadBatch {
        if let reads { return reads }
        let batch = ReadBatch { mailbox.post(.completed($0)) }
        reads = batch
        return batch
    }

    mutating func append(mutation context: RequestContext) { mutationContexts.append(context) }

    mutating func append(read context: RequestContext) { readContexts.append(context) }

    /// Adds work of one request alone, behind the mutations that are there and before those that come.
    mutating func append(_ work: Submission.Work, for context: RequestContext) {
        closeMutations()
        submissions.append(Submission(work, on: backend, contexts: [context]))
    }

    private mutating func closeMutations() {
        guard let mutations else { return }
        submissions.append(Submission(.mutations(mutations), on: backend, contexts: mutationContexts))
        self.mutations = nil
        mutationContexts = []
    }

    /// The turn is over: what was gathered, ready to be handed over.
    mutating func take() -> [Submission] {
        closeMutations()
        if let reads {
            submissions.append(Submission(.reads(reads), on: backend, contexts: readContexts))
        }
        defer { self = BatchAssembly(backend: backend) }
        return submissions
    }
}
