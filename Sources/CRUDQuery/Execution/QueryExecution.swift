import CRUDJSON
package import CRUDModel

/// `record.query`: finds the records of one page. One thread at a time may use it.
package final class QueryExecution {
    private let search: RecordSearch
    private let collection: [UInt8]
    private let maximumBytes: Int
    /// `{"records": […], "cursor"?, "corrupt"?, "plan"?}`, when the page is complete.
    package private(set) var result: [UInt8] = []
    /// How many records it has.
    private var returned = 0

    /// - Parameters:
    ///   - maximumBytes: how long the result may be.
    ///   - timeout: a page that is found in its order ends early after this time.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(
        _ query: Query, in target: QueryTarget, maximumBytes: Int, timeout: Duration,
        limits: SearchLimits = SearchLimits()
    ) throws(CRUDError) {
        collection = target.name
        self.maximumBytes = maximumBytes
        search = try RecordSearch(
            query, .page, in: target, maximumBytes: maximumBytes - Self.overhead(query, target), timeout: timeout,
            limits: limits)
    }

    /// A query of which one slice is to be executed on an event loop; it is given up where that does not suffice.
    ///
    /// - Returns: nil for a query that may take long.
    package convenience init?(quick query: Query, in target: QueryTarget, maximumBytes: Int) throws(CRUDError) {
        guard QueryPlanner.isQuick(query, target.indexes) else { return nil }
        try self.init(query, in: target, maximumBytes: maximumBytes, timeout: .seconds(1), limits: .quick)
    }

    /// How much of a result is neither records nor cursor nor ids.
    private static func overhead(_ query: Query, _ target: QueryTarget) -> Int {
        let frame = #"{"records":[],"cursor":"","corrupt":[]}"#.utf8.count
        guard query.explains else { return frame }
        let longestPath = target.indexes.map(\.path.text.utf8.count).max() ?? 0
        return frame + 100 + 6 * longestPath
    }

    /// Searches for one slice, which takes some milliseconds.
    ///
    /// - Parameter isAbandoned: whether nobody waits for the result any more; the slice ends then, and the search is
    ///   not to be continued.
    /// - Returns: whether the page is complete.
    /// - Throws: `limit_exceeded` where not even one record fits; what the source throws.
    package func advance(
        _ source: any RecordSource, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        guard try search.advance(source, isAbandoned: isAbandoned) else { return false }
        guard !search.isOverfull else {
            throw CRUDError(
                .limitExceeded, "not even one record fits into a reply",
                details: .init(limit: "frame_bytes", maximum: maximumBytes))
        }
        finish()
        return true
    }

    /// Where the next page begins; nil: there is none.
    package var cursor: [UInt8]? {
        search.continuation.map { search.query.cursor(behind: $0, in: collection) }
    }

    /// Whether the next slice would be in vain: another thread decides about a long record.
    package var isWaiting: Bool { search.isWaiting }

    /// The ids of records that cannot be decoded and were left out; at most 100.
    package var corrupt: [[UInt8]] { search.corrupt }

    private func finish() {
        let found = search.records
        returned = found.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(found.reduce(256) { $0 + $1.content.count + 1 })
        var writer = JSONWriter(into: bytes)
        writer.object { result in
            result.key("records")
            result.array { records in
                for record in found { records.raw(record.content) }
            }
            if let cursor {
                result.key("cursor")
                result.string(utf8: cursor)
            }
            result.member(corrupt: corrupt)
            if search.query.explains {
                result.key("plan")
                plan.write(to: &result)
            }
        }
        result = writer.bytes
    }

    /// How the records were found, when the page is complete.
    package var plan: QueryPlan {
        let sort: QueryPlan.Sort =
            switch search.path {
            case .ordered: .storage
            case .ranges, .every: .host
            case .primary, .point, nil: search.query.sort.keys.isEmpty ? .id : .host
            }
        return QueryPlan(
            index: search.path?.index?.path.text, sort: sort, scanned: search.scanned, returned: returned)
    }
}

extension JSONWriter {
    /// The member of results that names corrupt records; none where there are none.
    mutating func member(corrupt ids: [[UInt8]]) {
        guard !ids.isEmpty else { return }
        key("corrupt")
        array { for id in ids { $0.string(utf8: id) } }
    }
}
