import CRUDJSON
package import CRUDModel

/// `record.count` with a filter. One thread at a time may use it.
package final class CountExecution {
    private let search: RecordSearch

    /// - Parameter query: only its filter and its prefix matter.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(
        _ query: Query, in target: QueryTarget, limits: SearchLimits = SearchLimits()
    ) throws(CRUDError) {
        search = try RecordSearch(query.selection, .count, in: target, limits: limits)
    }

    /// Counts for one slice, which takes some milliseconds.
    ///
    /// - Parameter isAbandoned: whether nobody waits for the result any more; the slice ends then, and the count is not
    ///   to be continued.
    /// - Returns: whether the count is complete.
    package func advance(
        _ source: any RecordSource, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        try search.advance(source, isAbandoned: isAbandoned)
    }

    /// How many records match, when the count is complete.
    package var count: Int { search.count }
    /// How they were found, when the count is complete.
    package var plan: QueryPlan {
        QueryPlan(index: search.path?.index?.path.text, sort: .id, scanned: search.scanned, returned: count)
    }

    /// Whether the next slice would be in vain: another thread decides about a long record.
    package var isWaiting: Bool { search.isWaiting }

    /// The ids of records that cannot be decoded and were left out; at most 100.
    package var corrupt: [[UInt8]] { search.corrupt }

    /// `{"count": …, "corrupt"?}`, when the count is complete.
    package var result: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            result.member("count", count)
            result.member(corrupt: corrupt)
        }
        return writer.bytes
    }
}
