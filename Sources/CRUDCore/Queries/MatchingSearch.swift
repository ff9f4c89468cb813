package import CRUDModel
package import CRUDPluginHost

/// Finds the records that `record.deleteMatching` deletes.
package final class MatchingSearch: MatchingRecords, @unchecked Sendable {
    // @unchecked: used by one thread at a time, as the protocol says.

    private let query: Query
    private let target: SearchTarget
    private let walk: Walk
    private var asks: Bool
    private var fault: CRUDError?
    /// Behind which id the records of `found` begin.
    private var start: [UInt8] = []
    package private(set) var found: [(id: [UInt8], revision: [UInt8])] = []

    /// How many records one call of the plugin deletes at the most.
    private static let maximumCount = 256

    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(_ query: Query, in target: SearchTarget) throws(CRUDError) {
        self.query = query
        self.target = target
        asks = target.canAsk && query.filter != nil
        walk = try Walk(target, filter: query.filter, prefix: query.prefix, needsItems: false)
    }

    package func find(with reader: BackendReader, for item: LongItem) throws(CRUDError) -> Bool {
        start = walk.position
        found.removeAll(keepingCapacity: true)
        if asks { return try ask(reader, item) }
        let outcome = try walk.advance(with: reader) { [self] id, _, revision in
            found.append((id, Array(revision)))
            return found.count == Self.maximumCount ? .last : .taken
        }
        return outcome == .collectionIsOver
    }

    private func ask(_ reader: BackendReader, _ item: LongItem) throws(CRUDError) -> Bool {
        var request = PluginQuery()
        request.filter = query.filterText
        request.prefix = query.prefix
        if !start.isEmpty { request.after = SortPosition(values: [], id: start).json }
        request.limit = Self.maximumCount
        request.withItems = false
        let end = ContinuousClock.now + PluginQuery.patience
        var plan = PluginPlan()
        let answer = try reader.query(
            request, in: target.stored, into: self, interrupt: { item.isAbandoned || ContinuousClock.now >= end },
            plan: &plan)
        if let last = found.last { walk.goOn(behind: last.id) }
        switch answer {
        case .complete: return found.count < Self.maximumCount
        case .interrupted, .refused:
            asks = !found.isEmpty
            return false
        }
    }

    package func rewind(to index: Int) {
        walk.goOn(behind: index == 0 ? start : found[index - 1].id)
    }
}

extension MatchingSearch: FoundRecordSink {
    package func receive(
        id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer
    ) -> Bool {
        found.append((Array(id), Array(revision)))
        return true
    }
}
