import CRUDModel
import CRUDPluginCalls

/// A call of a backend's storage on the writer's thread, behind what is queued there.
typealias StorageCall = QueuedCall<OpenStorage>

/// Reads of a thread that reads, other than those of clients: they do not keep the writer busy where the plugin reads
/// concurrently.
typealias ReadCall = QueuedCall<SnapshotReader>

/// A call on one of a backend's threads, with what the thread has.
final class QueuedCall<Target>: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let body: (Target) throws(CRUDError) -> Void

    init(
        _ body: @escaping @Sendable (Target) throws(CRUDError) -> Void,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.body = body
        super.init(deliver: deliver)
    }

    /// Makes the call; it is delivered later.
    func execute(with target: Target) {
        do throws(CRUDError) { try body(target) } catch { failure = error }
    }
}
