package import CRUDModel
import CRUDPluginHost
import Synchronization

/// A unit of work that a backend's worker executes for an event loop and hands back when it is done.
///
/// It belongs to the loop until it is submitted, to the worker until it is delivered, then to the loop again. Only
/// ``claim()`` and ``expire()`` are called from both sides; they decide whether the worker executes it or the loop has
/// withdrawn it. Who waits for it stays with the loop throughout.
package class WorkItem: @unchecked Sendable {
    // @unchecked: one owner at a time, as said above; the queue's lock orders the hand-over.

    private enum Claim: UInt8, AtomicRepresentable {
        case open, claimed, expired
    }

    private let claimState = Atomic(Claim.open)
    /// When a worker began with it, in nanoseconds of CLOCK_MONOTONIC; 0: none has.
    private let claimTime = Atomic<Int64>(0)
    /// Hands the item back to its loop; called by the worker, on its thread.
    private let deliver: @Sendable (WorkItem) -> Void
    /// Why the whole of it failed; nil where its parts have outcomes of their own.
    package internal(set) var failure: CRUDError?
    /// Whether the writer has tried to open the item's collections: one that is still closed does not exist.
    var isPrepared = false
    /// What has it in flight for a loop; nil: it is in no loop's hands.
    package internal(set) final unowned var submitter: (any WorkSubmitter)?
    /// The requests that wait for it, in the order in which they joined.
    private var waiters: [Waiter] = []

    private struct Waiter {
        let completion: any RequestCompletion
        /// The waiter's part of the item.
        let range: Range<Int>
        /// Whether its client has a reply already, for it was overdue.
        var hasReply = false
    }

    init(deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.deliver = deliver
    }

    // MARK: For subclasses

    /// Whether all collections that it reads are open.
    var isReadable: Bool { true }
    /// How much one call of the plugin would carry.
    package var byteCount: Int { 0 }
    /// An error as a waiter is told of it whose part is `range`.
    func naming(_ error: CRUDError, _ range: Range<Int>) -> CRUDError { error }
    /// Whether it changes records, so that the outcome is unknown where it was begun and did not end in time.
    var isWrite: Bool { false }
    /// Whether it looks for records in slices, and can be given up for a client.
    var isSearch: Bool { false }
    /// The session that has it for itself, whose later mutations must not overtake it; nil: no such one.
    var owner: Int? { nil }
    /// Nobody waits for it any more.
    func waitersHaveLeft() {}
    /// What a waiter is told whose time is over while a worker is busy with the item.
    func overdueError(_ backend: String) -> CRUDError { isWrite ? .overdueWrite(backend) : .overdue(backend) }

    // MARK: The worker's side

    /// The worker begins with the item; false if its loop has withdrawn it before.
    final func claim() -> Bool {
        let isClaimed = claimState.compareExchange(
            expected: .open, desired: .claimed, ordering: .acquiringAndReleasing
        ).exchanged
        if isClaimed { claimTime.store(CallContext.monotonicNanoseconds, ordering: .relaxed) }
        return isClaimed
    }

    final func finish() { deliver(self) }

    // MARK: The loop's side

    /// Withdraws the item: true if no worker has begun with it or ever will, so that nothing can have been applied.
    package final func expire() -> Bool {
        claimState.compareExchange(expected: .open, desired: .expired, ordering: .acquiringAndReleasing).exchanged
    }

    /// When a worker began with it, on the loop's clock; nil if none has.
    package final var begun: Duration? {
        let time = claimTime.load(ordering: .relaxed)
        return time == 0 ? nil : .nanoseconds(time)
    }

    final func append(_ completion: any RequestCompletion, _ range: Range<Int>) {
        waiters.append(Waiter(completion: completion, range: range))
    }

    /// The worker is done: replies to every request that waits, then ends all of them.
    final func complete() {
        for waiter in waiters where !waiter.hasReply {
            if let failure {
                waiter.completion.fail(naming(failure, waiter.range), begun: begun, isOverdue: false)
            } else {
                waiter.completion.complete(with: self, waiter.range)
            }
        }
        for waiter in waiters { waiter.completion.ended() }
    }

    /// Replies to the requests whose time is over.
    ///
    /// - Returns: whether the item is withdrawn: nobody is left to wait, and no worker will ever begin with it.
    final func expireWaiters(at now: Duration, backend: String) -> Bool {
        let overdue = waiters.indices.filter { !waiters[$0].hasReply && waiters[$0].completion.deadline <= now }
        let isNobodyLeft = waiters.allSatisfy { $0.hasReply || $0.completion.deadline <= now }
        let isWithdrawn = !overdue.isEmpty && isNobodyLeft && expire()
        for index in overdue {
            waiters[index].hasReply = true
            let error = isWithdrawn ? .overdue(backend) : overdueError(backend)
            waiters[index].completion.fail(naming(error, waiters[index].range), begun: begun, isOverdue: true)
        }
        // A write of a client that has gone is still executed.
        if waiters.allSatisfy({ $0.hasReply || !isWrite && !$0.completion.isWanted }) { waitersHaveLeft() }
        if isWithdrawn { for waiter in waiters { waiter.completion.ended() } }
        return isWithdrawn
    }
}

/// A part of an event loop that has work in flight.
package protocol WorkSubmitter: AnyObject {
    /// Replies to the requests of an item that has been handed back.
    func complete(_ item: WorkItem)
}

/// A request that waits for work of a backend. It is called on the event loop that has submitted the work: once
/// ``complete(with:_:)`` or ``fail(_:begun:isOverdue:)``, then once ``ended()``.
package protocol RequestCompletion: AnyObject {
    /// When the request has waited long enough, on the loop's clock.
    var deadline: Duration { get }
    /// Whether anybody would read the reply.
    var isWanted: Bool { get }

    /// The work is done.
    ///
    /// - Parameters:
    ///   - item: what has been submitted for the request, or the batch that its reads or mutations have joined.
    ///   - range: the request's part of a batch: the positions of its results or outcomes.
    func complete(with item: WorkItem, _ range: Range<Int>)

    /// The work as a whole has failed, or it takes too long.
    ///
    /// - Parameters:
    ///   - begun: when a thread of the backend began with it, on the loop's clock; nil: none has.
    ///   - isOverdue: the backend may still be busy with it.
    func fail(_ error: CRUDError, begun: Duration?, isOverdue: Bool)

    /// The backend is done with it, or will never begin: nothing is held for it any more.
    func ended()
}

extension CRUDError {
    fileprivate static func overdue(_ backend: String) -> CRUDError {
        CRUDError(.unavailable, "backend \(backend) did not finish in time; nothing was applied")
    }

    fileprivate static func overdueWrite(_ backend: String) -> CRUDError {
        CRUDError(
            .outcomeUnknown, "backend \(backend) did not finish in time; the write may or may not have been applied")
    }
}
