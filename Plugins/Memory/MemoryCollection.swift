import Synchronization

/// An open collection: what readers see of it.
final class MemoryCollection: Sendable {
    private let records = Mutex(RecordSet())

    /// The records as they are now; the snapshot stays so, whatever is written.
    var snapshot: RecordSet { records.withLock { $0 } }

    /// Has readers see `records` from now on.
    func publish(_ records: RecordSet) {
        // What this frees is freed when the lock is not held any more.
        var records = records
        self.records.withLock { swap(&$0, &records) }
    }
}
