import Synchronization

/// The open readers of a backend. Any thread may use it.
final class SQLiteReaders: Sendable {
    private let readers = Mutex<[SQLiteReader]>([])

    func insert(_ reader: SQLiteReader) {
        readers.withLock { $0.append(reader) }
    }

    func remove(_ reader: SQLiteReader) {
        readers.withLock { readers in readers.removeAll { $0 === reader } }
    }

    /// Ends the read transactions of all readers, each as soon as its call in progress returns.
    func releaseSnapshots() {
        for reader in readers.withLock({ $0 }) { reader.releaseSnapshot() }
    }
}
