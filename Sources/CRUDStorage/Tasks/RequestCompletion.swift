package import CRUDModel

/// A request that waits for work of a backend. It is called on the event loop that has submitted the work: once
/// ``complete(with:)`` or ``fail(_:isOverdue:)``, then once ``ended()``.
package protocol RequestCompletion: AnyObject {
    /// When the request has waited long enough, on the loop's clock.
    var deadline: Duration { get }
    /// Whether anybody would read the reply.
    var isWanted: Bool { get }

    /// The work is done.
    func complete(with work: CompletedWork)

    /// The work as a whole has failed, or it takes too long.
    ///
    /// - Parameter isOverdue: the backend may still be busy with it.
    func fail(_ error: CRUDError, isOverdue: Bool)

    /// The backend is done with it, or will never begin: nothing is held for it any more.
    func ended()
}

/// What a backend has done for one request.
package enum CompletedWork {
    /// The request's mutations in a batch: their outcomes stand at these positions.
    case mutations(MutationBatch, Range<Int>)
    /// The request's read in a batch: its result stands at this position.
    case read(ReadBatch, Int)
    case search(SearchTask)
    case deletion(BulkDelete)
    /// The rebuild of the indexes has begun.
    case reindex
}
