import CRUDJSON
import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import Synchronization

/// What one thread sets and another one asks for.
private final class Flag: Sendable {
    private let atomic = Atomic(false)

    var value: Bool { atomic.load(ordering: .relaxed) }

    func set() { atomic.store(true, ordering: .relaxed) }
}

/// A search that is executed here, next to the plugin, one slice after the other.
final class Search: @unchecked Sendable {
    // @unchecked: one thread uses it at a time, the one that has taken it from the storage.

    private let execution: Execution
    private let collection: ServedCollection
    private let isEnded = Flag()

    private enum Execution {
        case query(QueryExecution)
        case count(CountExecution)
        case matching(MatchExecution)
    }

    /// - Throws: `invalid_query`, and `invalid_params` for a request that means nothing.
    init(_ request: ChildSearch, in collection: ServedCollection) throws(CRUDError) {
        self.collection = collection
        let indexes = request.indexes.filter(collection.indexPaths.indices.contains).map { number in
            QueryIndex(path: collection.indexPaths[number], number: number)
        }
        let target = QueryTarget(
            collection.name, indexes: indexes, collection.codec, maximumItemBytes: request.maximumItemBytes)
        let query = try Query(json: request.query.span)
        switch request.kind {
        case .query:
            execution = .query(
                try QueryExecution(
                    query, in: target, maximumBytes: request.maximumBytes, timeout: request.timeout,
                    limits: .onThread))
        case .count: execution = .count(try CountExecution(query, in: target, limits: .onThread))
        case .matching: execution = .matching(try MatchExecution(query, in: target, limits: .onThread))
        }
    }

    /// The search resumes with a record that the last slice has found.
    func rewind(to position: Int) {
        if case .matching(let matching) = execution { matching.rewind(to: position) }
    }

    /// Whether the search is over.
    private(set) var isDone = false

    /// Executes a slice.
    func advance(with reader: SnapshotReader) throws(CRUDError) {
        let isAbandoned: @Sendable () -> Bool = { [isEnded] in isEnded.value }
        let source = PluginRecordSource(reader, collection, isAbandoned: isAbandoned)
        isDone =
            switch execution {
            case .query(let query): try query.advance(source, isAbandoned: isAbandoned)
            case .count(let count): try count.advance(source, isAbandoned: isAbandoned)
            case .matching(let matching): try matching.find(source, isAbandoned: isAbandoned)
            }
    }

    /// Whether the next slice would be in vain: another thread decides about a long record.
    var isWaiting: Bool {
        switch execution {
        case .query(let query): query.isWaiting
        case .count(let count): count.isWaiting
        case .matching(let matching): matching.isWaiting
        }
    }

    /// The daemon does not continue it: stops what another thread does for it.
    func end() { isEnded.set() }

    /// Whether the daemon may continue the search: one for records to delete may be rewound after its last batch, and
    /// is kept until the daemon ends it.
    var isContinuable: Bool {
        if case .matching = execution { true } else { !isDone }
    }

    /// Whether the daemon must see the result before the search is continued.
    var hasResult: Bool {
        if case .matching(let matching) = execution { isDone || !matching.found.isEmpty } else { isDone }
    }

    /// How a query or a count has found its records, as JSON text, when it is over.
    var plan: [UInt8]? {
        guard isDone else { return nil }
        return switch execution {
        case .query(let query): query.plan.json
        case .count(let count): count.plan.json
        case .matching: nil
        }
    }

    /// The result of the whole search, empty before it is over; of ``Execution/matching`` that of the last slice.
    var result: [UInt8] {
        switch execution {
        case .query(let query): isDone ? query.result : []
        case .count(let count): isDone ? count.result : []
        case .matching(let matching): MatchBatch(found: matching.found, corrupt: matching.corrupt).json
        }
    }
}
