import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost

/// The matches of a bulk delete, found next to the plugin.
final class RemoteMatches: MatchExecutor {
    private var task: RemoteTask
    private var batch = MatchBatch()
    private var resumption: Int?

    init(
        _ request: SearchRequest, in collection: BackendCollection, number: Int, of child: Child,
        _ failures: FailureReporter
    ) {
        task = RemoteTask(request, .matching, collection, number, child, failures)
    }

    var found: [(id: [UInt8], revision: [UInt8])] { batch.found }
    private(set) var corrupt: [[UInt8]] = []
    var isWaiting: Bool { task.isWaiting }

    func find(with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool) throws(CRUDError) -> Bool {
        let slice = try task.advance(from: resumption.take())
        guard let batch = MatchBatch(json: slice.result) else {
            throw CRUDError(.internalError, "the child's list of records cannot be decoded")
        }
        self.batch = batch
        corrupt = batch.corrupt
        return slice.isDone
    }

    func rewind(to position: Int) { resumption = position }

    func end() { task.end() }
}
