import CRUDModel

/// A call of a backend's storage on the writer's thread, behind what is queued there.
final class StorageCall: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let body: (OpenStorage) throws(CRUDError) -> Void

    init(
        _ body: @escaping @Sendable (OpenStorage) throws(CRUDError) -> Void,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.body = body
        super.init(deliver: deliver)
    }

    /// Makes the call and delivers it.
    func execute(with storage: OpenStorage) {
        do throws(CRUDError) { try body(storage) } catch { failure = error }
        finish()
    }
}
