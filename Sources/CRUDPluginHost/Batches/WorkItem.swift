package import CRUDModel
import Synchronization

/// Something that a backend's worker does for somebody, and gives back when it is done.
///
/// It belongs to whoever made it until it is submitted, to the worker until it is delivered, then to its maker again;
/// only ``claim()`` and ``expire()`` are called from both sides, and decide between them who answers.
package class WorkItem: @unchecked Sendable {
    // @unchecked: one owner at a time, as said above; the queue's lock orders the hand-over.

    private enum Claim: UInt8, AtomicRepresentable {
        case open, claimed, expired
    }

    private let claimState = Atomic(Claim.open)

    /// Hands the item back to its maker; called by the worker, on its thread.
    private let deliver: @Sendable (WorkItem) -> Void

    /// Why the whole of it failed; nil where its parts have outcomes of their own.
    package internal(set) var failure: CRUDError?

    /// Whether the writer has seen to the item's collections: one that is closed all the same is not there.
    var isPrepared = false

    /// Whether all collections that it reads are open.
    var isReadable: Bool { true }

    init(deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.deliver = deliver
    }

    /// How much one call of the plugin would carry.
    var byteCount: Int { 0 }

    /// The worker takes the item up; false if its maker has given it up before.
    final func claim() -> Bool {
        claimState.compareExchange(expected: .open, desired: .claimed, ordering: .acquiringAndReleasing).exchanged
    }

    /// The maker gives the item up: true if no worker has taken it or ever will, so that nothing can have been applied.
    package final func expire() -> Bool {
        claimState.compareExchange(expected: .open, desired: .expired, ordering: .acquiringAndReleasing).exchanged
    }

    final func finish() {
        deliver(self)
    }
}
