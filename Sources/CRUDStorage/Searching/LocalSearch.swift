import CRUDModel
import CRUDPluginCalls
import CRUDQuery

/// A search that is executed in this process.
final class LocalSearch: SearchExecution {
    private enum Stage {
        case query(QueryExecution)
        case count(CountExecution)
    }

    private let collection: BackendCollection
    private let stage: Stage
    private let indexes: IndexGeneration

    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    init(_ request: SearchRequest, in collection: BackendCollection) throws(CRUDError) {
        self.collection = collection
        indexes = IndexGeneration(of: collection)
        let target = QueryTarget(collection, maximumItemBytes: request.maximumItemBytes)
        switch request.kind {
        case .query:
            stage = .query(
                try QueryExecution(
                    request.query, in: target, maximumBytes: request.maximumBytes, timeout: request.timeout,
                    limits: .onThread))
        case .count: stage = .count(try CountExecution(request.query, in: target, limits: .onThread))
        }
    }

    /// A search of which one slice is to be executed on an event loop; it is given up where that does not suffice.
    ///
    /// - Returns: nil for one that may take long.
    init?(quick request: SearchRequest, in collection: BackendCollection) throws(CRUDError) {
        guard request.kind == .query else { return nil }
        indexes = IndexGeneration(of: collection)
        let target = QueryTarget(collection, maximumItemBytes: request.maximumItemBytes)
        guard let query = try QueryExecution(quick: request.query, in: target, maximumBytes: request.maximumBytes)
        else { return nil }
        self.collection = collection
        stage = .query(query)
    }

    var isWaiting: Bool {
        switch stage {
        case .query(let query): query.isWaiting
        case .count(let count): count.isWaiting
        }
    }

    var result: [UInt8] {
        switch stage {
        case .query(let query): query.result
        case .count(let count): count.result
        }
    }

    var corrupt: [[UInt8]] {
        switch stage {
        case .query(let query): query.corrupt
        case .count(let count): count.corrupt
        }
    }

    var plan: QueryPlan? {
        switch stage {
        case .query(let query): query.plan
        case .count(let count): count.plan
        }
    }

    func advance(
        with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        let source = PluginRecordSource(reader, collection, isAbandoned: isAbandoned)
        return try indexes.whileValid { () throws(CRUDError) in
            switch stage {
            case .query(let query): try query.advance(source, isAbandoned: isAbandoned)
            case .count(let count): try count.advance(source, isAbandoned: isAbandoned)
            }
        }
    }

    func end() {}
}

extension QueryTarget {
    /// - Parameter maximumItemBytes: how long the text of an item may be.
    init(_ collection: BackendCollection, maximumItemBytes: Int) {
        self.init(
            collection.name, indexes: collection.indexes?.usable ?? [], collection.codec,
            maximumItemBytes: maximumItemBytes)
    }
}
