import CRUDPluginCalls
import CRUDPluginHost

/// Reading that may take long, on a thread that reads.
package class ReadTask: SlicedTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    override init(on collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        collection.beginReading()
        super.init(on: collection, deliver: deliver)
    }

    deinit { collection.endReading() }

    /// Executes one slice; true when there is nothing left to do.
    ///
    /// - Parameter child: the child that the plugin runs in, if it does.
    func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool { true }
}
