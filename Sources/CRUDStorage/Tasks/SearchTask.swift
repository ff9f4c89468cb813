import CRUDModel
import CRUDPluginHost
package import CRUDQuery

/// What a search looks for.
package struct SearchRequest: Sendable {
    package enum Kind: Sendable {
        /// `record.query`: a page of records.
        case query
        /// `record.count`: how many records match.
        case count
    }

    package var kind: Kind
    package var query: Query
    /// How long records and cursor of a page may be together.
    package var maximumBytes: Int
    /// How long the text of one item may be.
    package var maximumItemBytes: Int
    /// A page that does not need all records ends early after this.
    package var timeout: Duration

    package init(_ kind: Kind, _ query: Query, maximumBytes: Int, maximumItemBytes: Int, timeout: Duration) {
        self.kind = kind
        self.query = query
        self.maximumBytes = maximumBytes
        self.maximumItemBytes = maximumItemBytes
        self.timeout = timeout
    }
}

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

    override func work(_ range: Range<Int>) -> CompletedWork { .search(self) }

    /// Executes one slice; true when there is nothing left to do.
    ///
    /// - Parameter child: the child that the plugin runs in, if it does.
    func advance(with reader: SnapshotReader, of backend: Backend, child: Child?) -> Bool {
        defer { reader.releaseSnapshot() }
        do throws(CRUDError) {
            let execution = if let execution { execution } else { try begin(backend, child) }
            self.execution = execution
            if isAbandoned {
                failure = CRUDError(.unavailable, "nobody waited for the search any more")
                return true
            }
            guard try execution.advance(with: reader, isAbandoned: { [self] in isAbandoned }) else { return false }
            result = execution.result
        } catch {
            failure = error
        }
        return true
    }

    override func end() {
        execution?.end()
        execution = nil
    }

    private func begin(_ backend: Backend, _ child: Child?) throws(CRUDError) -> any SearchExecution {
        if let child, child.canSearch, let number = collection.number(inChild: child.identity) {
            return RemoteSearch(request, in: collection, backend, number: number, of: child)
        }
        return try LocalSearch(request, in: collection)
    }
}

/// One way of executing a search.
protocol SearchExecution: AnyObject {
    /// The result, as JSON text, when the search is done.
    var result: [UInt8] { get }

    /// Executes one slice.
    ///
    /// - Returns: whether the search is done.
    func advance(with reader: SnapshotReader, isAbandoned: @escaping () -> Bool) throws(CRUDError) -> Bool

    /// There will be no further slice.
    func end()
}
