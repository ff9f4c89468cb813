import Synchronization

/// An open collection: what readers see of it.
final class MemoryCollection: Sendable {
    private let tree = Mutex(RecordTree())

    /// The records as they are now; they stay so, whatever is written.
    var snapshot: RecordTree { tree.withLock { $0 } }

    /// Has readers see `tree` from now on.
    func publish(_ tree: RecordTree) {
        // What this frees is freed when the lock is not held any more.
        var tree = tree
        self.tree.withLock { swap(&$0, &tree) }
    }
}
