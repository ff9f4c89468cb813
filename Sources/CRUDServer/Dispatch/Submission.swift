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
        case search(Search)
        case deletion(Deletion)
    }

    let work: Work
    let backend: Backend
    let contexts: [RequestContext]
    /// Which of them have been answered, for want of patience before the backend was done.
    private var isAnswered: [Bool]

    init(_ work: Work, on backend: Backend, contexts: [RequestContext]) {
        self.work = work
        self.backend = backend
        self.contexts = contexts
        isAnswered = Array(repeating: false, count: contexts.count)
    }

    var item: WorkItem {
        switch work {
        case .mutations(let batch): batch
        case .reads(let batch): batch
        case .search(let search): search
        case .deletion(let deletion): deletion
        }
    }

    /// Hands the batch to the backend.
    func submit() {
        switch work {
        case .mutations(let batch): backend.submit(batch)
        case .reads(let batch): backend.submit(batch)
        case .search(let search): backend.submit(search)
        case .deletion(let deletion): backend.submit(deletion)
        }
    }

    /// Answers every request with what the backend has made of it.
    func answer(with dispatcher: Dispatcher) {
        for (index, context) in contexts.enumerated() where !isAnswered[index] {
            switch work {
            case _ where item.failure != nil: answer(index, with: item.failure, isOverdue: false, dispatcher)
            case .mutations(let batch): dispatcher.answer(context, of: batch)
            case .reads(let batch): dispatcher.answer(context, with: batch.results[context.position], of: batch)
            case .search(let search): dispatcher.answer(context, with: search.reading)
            case .deletion(let deletion): dispatcher.answer(context, with: deletion)
            }
            context.session.answered(context)
        }
    }

    /// Answers the requests that have waited long enough.
    ///
    /// - Returns: whether these were all, the backend had not begun and now never will. Else what it makes of the batch is
    ///   still to come, and to be counted.
    func giveUp(at now: Duration, with dispatcher: Dispatcher) -> Bool {
        let overdue = contexts.indices.filter { !isAnswered[$0] && contexts[$0].deadline <= now }
        let neverBegins = overdue.count == contexts.count && item.expire()
        let error: CRUDError =
            switch work {
            case .mutations where !neverBegins, .deletion where !neverBegins:
                CRUDError(.outcomeUnknown, "the backend took too long; the write may or may not be applied")
            default: CRUDError(.unavailable, "the backend took too long; nothing was applied")
            }
        for index in overdue {
            answer(index, with: error, isOverdue: true, dispatcher)
            contexts[index].session.answered(contexts[index])
            isAnswered[index] = true
        }
        if !overdue.isEmpty || isReadingForNobody { (item as? LongItem)?.abandon() }
        return neverBegins
    }

    /// Whether it is a search whose answer nobody would read.
    private var isReadingForNobody: Bool {
        guard case .search = work else { return false }
        return contexts.allSatisfy { !$0.session.isListenedTo }
    }

    private func answer(_ index: Int, with error: CRUDError?, isOverdue: Bool, _ dispatcher: Dispatcher) {
        guard let error else { return }
        if let part = contexts[index].part {
            return dispatcher.answer(contexts[index], part, with: error, isOverdue: isOverdue)
        }
        if let id = contexts[index].ownID {
            return id.withUnsafeBytes { dispatcher.answer(contexts[index], with: error, id: $0) }
        }
        guard let id = contexts[index].id else { return }
        dispatcher.answer(contexts[index], with: error, id: bytes(id))
    }

    private func bytes(_ place: ByteArena.Place) -> UnsafeRawBufferPointer {
        switch work {
        case .mutations(let batch): batch.arena.bytes(place)
        case .reads(let batch): batch.arena.bytes(place)
        // Their contexts have their ids with them.
        case .search, .deletion: UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }
}

/// A request that is under way: what its answer needs.
struct RequestContext {
    let session: Session
    let collection: Collection
    /// Those that it concerns beside the one above.
    var otherCollections: [Collection] = []
    let traits: MethodTraits
    let target: ReplyTarget
    /// The request's id as it was sent, in the batch's arena; nil for a notification.
    let id: ByteArena.Place?
    /// The same for work of one request alone, which has no arena.
    var ownID: [UInt8]?
    /// When it has waited long enough, on the loop's clock.
    let deadline: Duration
    /// How many bytes its session is charged for it.
    let heldBytes: Int
    /// The ids that a read asks for as they were sent, in the batch's arena.
    var recordIDs: [ByteArena.Place] = []
    /// What part of an item a read answers.
    var projection: FieldProjection?
    /// Of a patch: whether it makes a record where there is none.
    var upserts = false
    /// Of `record.batch`: what the request asks of this batch's backend.
    var part: OperationsPart?
    /// The place of its read, or of its first mutation, in its batch.
    var position = 0
    /// As how many requests under way it counts.
    var weight: Int { part?.operations.count ?? 1 }

    var method: Method { traits.method }
    var kind: RequestKind { RequestKind(traits) }
}
