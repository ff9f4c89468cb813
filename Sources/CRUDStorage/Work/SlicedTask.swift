import CRUDModel
import Synchronization

/// Work on one collection that may take long. A backend's thread executes it slice by slice, some milliseconds each, in
/// turns with everything else.
package class SlicedTask: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package let collection: BackendCollection
    private let abandoned = Atomic(false)
    /// Whether the writer has found that there is no such collection.
    var isAbsent = false

    init(on collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.collection = collection
        super.init(deliver: deliver)
    }

    override final var isReadable: Bool { collection.isCurrent }
    override final func waitersHaveLeft() { abandon() }

    /// Stops what another thread does for the task.
    final func abandon() { abandoned.store(true, ordering: .relaxed) }

    /// Whether nobody waits for it any more; it ends with its next slice.
    final var isAbandoned: Bool { abandoned.load(ordering: .relaxed) }

    /// Whether the next slice would be in vain: it waits for another thread or process.
    var isWaiting: Bool { false }

    /// There will be no further slice: releases what is kept for one.
    func end() {}

    /// Notes why it cannot continue.
    func fail(_ error: CRUDError) { failure = error }
}
