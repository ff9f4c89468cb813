import Synchronization

/// An open collection: what readers see of it.
final class MemoryCollection: Sendable {
    /// What the log calls it.
    let number: UInt32
    let name: [UInt8]
    let format: [UInt8]
    private let records: Mutex<RecordSet>
    /// What the log knows of it; the thread that writes alone uses it.
    private let described: Mutex<Record?>

    init(number: UInt32, name: [UInt8], format: [UInt8], _ records: RecordSet = RecordSet(), described: Record? = nil) {
        self.number = number
        self.name = name
        self.format = format
        self.records = Mutex(records)
        self.described = Mutex(described)
    }

    /// The records as they are now; the snapshot stays so, whatever is written.
    var snapshot: RecordSet { records.withLock { $0 } }

    /// What the log knows of the collection; nil: nothing.
    var description: Record? {
        get { described.withLock { $0 } }
        set { described.withLock { $0 = newValue } }
    }

    /// Reads the records, or changes them, while no reader takes a snapshot.
    func withRecords<Result>(_ body: (inout RecordSet) -> sending Result) -> sending Result {
        records.withLock { body(&$0) }
    }

    /// Has readers see `records` from now on.
    func publish(_ records: RecordSet) {
        // What this frees is freed when the lock is not held any more.
        var records = records
        self.records.withLock { swap(&$0, &records) }
    }
}
