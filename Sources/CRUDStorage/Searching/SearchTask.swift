import CRUDModel
import CRUDPluginHost

/// A search for records, on a thread that reads. It is executed by ``CRUDQuery``, here or, where the plugin runs in a
/// child that can, next to the plugin.
package final class SearchTask: SlicedTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let request: SearchRequest
    private var execution: (any SearchExecution)?
    /// The result, as JSON text, when the search is done.
    package private(set) var result: [UInt8] = []

    package init(
        _ request: SearchRequest, in collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.request = request
        super.init(on: collection, deliver: deliver)
    }

    /// Executes one slice; true when there is nothing left to do.
    ///
    /// - Parameter child: the child that the plugin runs in, if it does.
    func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool {
        defer { reader.releaseSnapshot() }
        do throws(CRUDError) {
            let execution = if let execution { execution } else { try begin(child, failures) }
            self.execution = execution
            if isAbandoned {
                failure = CRUDError(.unavailable, "nobody waited for the search any more")
                return true
            }
            guard try execution.advance(with: reader, isAbandoned: { [self] in isAbandoned }) else { return false }
            result = execution.result
            failures.note(corrupt: execution.corrupt, in: collection)
        } catch {
            failure = error
        }
        return true
    }

    override func end() {
        execution?.end()
        execution = nil
    }

    private func begin(_ child: Child?, _ failures: FailureReporter) throws(CRUDError) -> any SearchExecution {
        if let child, child.canSearch, let number = collection.number(inChild: child.identity) {
            return RemoteSearch(request, in: collection, number: number, of: child, failures)
        }
        return try LocalSearch(request, in: collection)
    }
}
