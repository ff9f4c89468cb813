import CRUDModel

/// Reads of a thread that reads, other than those of clients: they do not keep the writer busy where the plugin reads
/// concurrently.
final class ReadCall: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let body: (SnapshotReader) throws(CRUDError) -> Void

    init(
        _ body: @escaping @Sendable (SnapshotReader) throws(CRUDError) -> Void,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.body = body
        super.init(deliver: deliver)
    }

    /// Reads; it is delivered later.
    func execute(with reader: SnapshotReader) {
        do throws(CRUDError) { try body(reader) } catch { failure = error }
        reader.releaseSnapshot()
    }
}
