package import CRUDModel
package import CRUDPluginHost

/// `record.count` with a filter: asks the backend, or walks through the collection.
package final class CountSearch: SlicedReading, @unchecked Sendable {
    // @unchecked: used by one thread at a time, as the protocol says.

    private let query: Query
    private let target: SearchTarget
    private let walk: Walk
    private var asks: Bool
    /// How many records match, when the search is done.
    package private(set) var count = 0

    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(_ query: Query, in target: SearchTarget) throws(CRUDError) {
        self.query = query
        self.target = target
        asks = target.canAsk
        walk = try Walk(target, filter: query.filter, prefix: query.prefix, needsItems: false)
    }

    package func advance(with reader: BackendReader, for item: LongItem) throws(CRUDError) -> Bool {
        if asks {
            asks = false
            let end = ContinuousClock.now + PluginQuery.patience
            let answer = try reader.count(
                target.stored, filter: query.filterText, prefix: query.prefix,
                interrupt: { item.isAbandoned || ContinuousClock.now >= end })
            guard let answer else { return false }
            count = answer
            return true
        }
        let outcome = try walk.advance(with: reader) { [self] _, _, _ in
            count += 1
            return .taken
        }
        return outcome == .collectionIsOver
    }
}
