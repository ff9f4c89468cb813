import CRUDModel
import CRUDPluginCalls
import CRUDQuery

/// The matches of a bulk delete, found in this process.
final class LocalMatches: MatchExecutor {
    private let execution: MatchExecution
    private let collection: BackendCollection
    private let indexes: IndexGeneration

    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    init(_ request: SearchRequest, in collection: BackendCollection) throws(CRUDError) {
        execution = try MatchExecution(
            request.query, in: QueryTarget(collection, maximumItemBytes: request.maximumItemBytes), limits: .onThread)
        self.collection = collection
        indexes = IndexGeneration(of: collection)
    }

    var found: [(id: [UInt8], revision: [UInt8])] { execution.found }
    var corrupt: [[UInt8]] { execution.corrupt }
    var isWaiting: Bool { execution.isWaiting }

    func find(with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool) throws(CRUDError) -> Bool {
        try indexes.whileValid { () throws(CRUDError) in
            try execution.find(
                PluginRecordSource(reader, collection, isAbandoned: isAbandoned), isAbandoned: isAbandoned)
        }
    }

    func rewind(to position: Int) { execution.rewind(to: position) }

    func end() {}
}
