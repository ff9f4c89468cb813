import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost

/// Reading that may take long, on a thread that reads.
package class ReadTask: SlicedTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// How often the collection had been opened when the first slice began; nil: none has.
    private var openings: UInt32?

    override init(on collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        collection.beginReading()
        super.init(on: collection, deliver: deliver)
    }

    deinit { collection.endReading() }

    override final var isSearch: Bool { true }

    /// Notes which collection it reads: one that is dropped and created again is another one.
    final func beginSlice() { openings = openings ?? collection.openings }

    /// What a failure of a slice is for the client. A drop does not wait for it, so that the plugin may fail because
    /// the collection is gone.
    final func failure(of error: CRUDError) -> CRUDError {
        guard error.code == .internalError, !collection.isOpen || collection.openings != openings else { return error }
        return CRUDError(.unavailable, "the collection has been dropped or moved meanwhile")
    }

    /// Executes one slice; true when there is nothing left to do.
    ///
    /// - Parameter child: the child that the plugin runs in, if it does.
    func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool { true }
}
