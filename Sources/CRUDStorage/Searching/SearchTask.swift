import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
package import CRUDQuery

/// A search for records, on a thread that reads. It is executed by ``CRUDQuery``, here or, where the plugin runs in a
/// child that can, next to the plugin.
package final class SearchTask: ReadTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let request: SearchRequest
    private var execution: (any SearchExecution)?
    /// What has made the result, when the search is done.
    private var finished: (any SearchExecution)?
    /// The result, as JSON text, when the search is done.
    package var result: [UInt8] { finished?.result ?? [] }
    /// How the records have been found, when the search is done.
    package var plan: QueryPlan? { finished?.plan }

    package init(
        _ request: SearchRequest, in collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.request = request
        super.init(on: collection, deliver: deliver)
    }

    /// Executes one slice; true when there is nothing left to do.
    ///
    /// - Parameter child: the child that the plugin runs in, if it does.
    override func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool {
        defer { reader.releaseSnapshot() }
        beginSlice()
        do throws(CRUDError) {
            let execution = if let execution { execution } else { try begin(child, failures) }
            self.execution = execution
            if isAbandoned {
                failure = CRUDError(.unavailable, "nobody waited for the search any more")
                return true
            }
            guard try execution.advance(with: reader, isAbandoned: { [self] in isAbandoned }) else { return false }
            finish(execution, failures)
        } catch {
            failure = failure(of: error)
        }
        return true
    }

    /// How an attempt to search on an event loop has ended.
    enum Attempt {
        case done
        /// It takes longer, and has to be submitted; time was lost.
        case givenUp
        /// It may take longer, and has to be submitted.
        case notMade
    }

    /// Executes the whole search, if that takes no more than a fraction of a millisecond.
    func executeNow(with reader: SnapshotReader, _ failures: FailureReporter) -> Attempt {
        do throws(CRUDError) {
            guard let execution = try LocalSearch(quick: request, in: collection) else { return .notMade }
            guard try execution.advance(with: reader, isAbandoned: { false }) else { return .givenUp }
            finish(execution, failures)
        } catch {
            failure = error
        }
        return .done
    }

    private func finish(_ execution: any SearchExecution, _ failures: FailureReporter) {
        finished = execution
        failures.note(corrupt: execution.corrupt, in: collection)
    }

    override var isWaiting: Bool { !isAbandoned && execution?.isWaiting == true }

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
