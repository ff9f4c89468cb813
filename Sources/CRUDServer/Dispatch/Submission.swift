import CRUDCore
import CRUDModel
import CRUDPluginHost
import CRUDWire

/// A batch that a backend has in hand, and whom to answer when it comes back.
final class Submission {
    /// What was handed over.
    enum Work {
        case mutations(MutationBatch)
        case reads(ReadBatch)
    }

    let work: Work
    let backend: Backend
    let contexts: [RequestContext]
    /// When its requests have waited long enough, on the loop's clock.
    let deadline: Duration
    /// Its requests have been answered without waiting any longer; what comes back is only counted.
    private(set) var isAnswered = false

    init(_ work: Work, on backend: Backend, contexts: [RequestContext], deadline: Duration) {
        self.work = work
        self.backend = backend
        self.contexts = contexts
        self.deadline = deadline
    }

    var item: WorkItem {
        switch work {
        case .mutations(let batch): batch
        case .reads(let batch): batch
        }
    }

    /// Hands the batch to the backend.
    func submit() {
        switch work {
        case .mutations(let batch): backend.submit(batch)
        case .reads(let batch): backend.submit(batch)
        }
    }

    /// Answers every request with what the backend has made of it.
    func answer(with dispatcher: Dispatcher) {
        isAnswered = true
        if let failure = item.failure { return answer(all: failure, with: dispatcher) }
        for (index, context) in contexts.enumerated() {
            switch work {
            case .mutations(let batch):
                dispatcher.answer(context, batch.mutations[index], with: batch.outcomes[index], of: batch)
            case .reads(let batch): dispatcher.answer(context, with: batch.results[index], of: batch)
            }
            context.session.answered(context)
        }
    }

    /// Answers every request that it has taken too long.
    ///
    /// - Returns: whether the backend had not begun and now never will. Else what it makes of the batch is still to come,
    ///   and to be counted.
    func giveUp(with dispatcher: Dispatcher) -> Bool {
        isAnswered = true
        let neverBegins = item.expire()
        let error: CRUDError =
            switch work {
            case .mutations where !neverBegins:
                CRUDError(.outcomeUnknown, "the backend took too long; the write may or may not be applied")
            default: CRUDError(.unavailable, "the backend took too long; nothing was applied")
            }
        answer(all: error, with: dispatcher)
        return neverBegins
    }

    private func answer(all error: CRUDError, with dispatcher: Dispatcher) {
        for context in contexts {
            if let id = context.id { dispatcher.answer(context, with: error, id: bytes(id)) }
            context.session.answered(context)
        }
    }

    private func bytes(_ place: ByteArena.Place) -> UnsafeRawBufferPointer {
        switch work {
        case .mutations(let batch): batch.arena.bytes(place)
        case .reads(let batch): batch.arena.bytes(place)
        }
    }
}

/// A request that is under way: what its answer needs.
struct RequestContext {
    let session: Session
    let collection: Collection
    let traits: MethodTraits
    let target: ReplyTarget
    /// The request's id as it was sent, in the batch's arena; nil for a notification.
    let id: ByteArena.Place?
    /// How many bytes its session is charged for it.
    let heldBytes: Int
    /// The ids that a read asks for as they were sent, in the batch's arena.
    var recordIDs: [ByteArena.Place] = []
    /// What part of an item a read answers.
    var projection: FieldProjection?

    var method: Method { traits.method }
    var kind: RequestKind { RequestKind(traits.access) }
}
