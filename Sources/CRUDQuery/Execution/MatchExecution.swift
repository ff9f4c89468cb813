package import CRUDModel

/// Finds the records that `record.deleteMatching` deletes, by id, in batches. One thread at a time may use it.
///
/// Without a filter items are not looked at.
package final class MatchExecution {
    private let search: RecordSearch
    /// Whether the search has come to the end of a batch.
    private var isComplete = true
    /// Behind which id the records of ``found`` begin; nil: at the first one.
    private var start: [UInt8]?
    /// Behind which id the next batch begins; nil: at the first one.
    private var next: [UInt8]?
    /// The records that the last call has found, by id, at most 256.
    package private(set) var found: [(id: [UInt8], revision: [UInt8])] = []
    /// Whether the next slice would be in vain: another thread decides about a long record.
    package var isWaiting: Bool { search.isWaiting }

    /// The ids of records that cannot be decoded and were left out; at most 100.
    package var corrupt: [[UInt8]] { search.corrupt }

    /// How many records one call of a plugin deletes at the most.
    private static let batch = 256

    /// - Parameter query: only its filter and its prefix matter.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(
        _ query: Query, in target: QueryTarget, limits: SearchLimits = SearchLimits()
    ) throws(CRUDError) {
        var selection = query.selection
        selection.limit = Self.batch
        search = try RecordSearch(selection, .revisions, in: target, limits: limits)
    }

    /// Searches for one slice, which takes some milliseconds.
    ///
    /// - Parameter isAbandoned: whether nobody waits for the records any more; the slice ends then, and the search is
    ///   not to be continued.
    /// - Returns: whether no records remain behind those of ``found``, which may be empty either way.
    package func find(
        _ source: any RecordSource, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        found.removeAll(keepingCapacity: true)
        if isComplete {
            start = next
            search.restart(behind: next.map { SortPosition(values: [], id: $0) })
        }
        isComplete = try search.advance(source, isAbandoned: isAbandoned)
        guard isComplete else { return false }
        found = search.records.map { ($0.position.id, $0.content) }
        next = search.continuation?.id
        return next == nil
    }

    /// The next call finds the record at `position` of ``found`` again, if it still matches, and those behind it.
    package func rewind(to position: Int) {
        next = position == 0 ? start : found[position - 1].id
    }
}
