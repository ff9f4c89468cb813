import CRUDModel

/// Chooses the access path of a query.
///
/// A few candidates are best found by an index and sorted. Otherwise a page needs only the beginning of an order: that
/// of an index by the sort's first property, or of the ids among the records with one key. Where neither helps, a scan
/// of all records is as fast as one of very many in the order of keys.
struct QueryPlanner {
    private struct Candidate {
        var index: QueryIndex
        var ranges: KeyRanges
    }

    private let query: Query
    private let indexes: [QueryIndex]
    private let limits: SearchLimits
    /// The indexes by properties that the filter restricts.
    private let candidates: [Candidate]

    init(_ query: Query, _ indexes: [QueryIndex], _ limits: SearchLimits) {
        self.query = query
        self.indexes = indexes
        self.limits = limits
        candidates = indexes.compactMap { index in
            query.filter.flatMap { KeyRanges($0, of: index.path) }.map { Candidate(index: index, ranges: $0) }
        }
    }

    /// The path to the first records of the query's order.
    func path(in source: any RecordSource) throws(CRUDError) -> AccessPath {
        let point = query.sort.keys.isEmpty && query.prefix.isEmpty ? self.point : nil
        if let point, candidates.count == 1 { return point }
        let ordered = self.ordered
        let isPageEnough = ordered != nil || query.sort.keys.isEmpty
        if let few = try few(in: source, maximum: isPageEnough ? limits.few : limits.many) { return few }
        return ordered ?? point ?? (isPageEnough ? .primary : .every)
    }

    /// The path to all records that match.
    func pathToAll(in source: any RecordSource) throws(CRUDError) -> AccessPath {
        try few(in: source, maximum: limits.many) ?? .every
    }

    /// Whether the first slice may well be the last: a small page of the records with one key, or of all records by id.
    var isQuick: Bool {
        guard query.limit <= Self.quickRecords, query.sort.keys.isEmpty else { return false }
        if query.filter == nil { return true }
        return query.prefix.isEmpty && candidates.count == 1 && point != nil
    }

    private static let quickRecords = 100

    /// The index that restricts a property to one value.
    private var point: AccessPath? {
        for candidate in candidates {
            if let key = candidate.ranges.point { return .point(candidate.index, key: key) }
        }
        return nil
    }

    /// The index that has the order of the sort's first property.
    private var ordered: AccessPath? {
        guard let path = query.sort.keys.first?.path, let index = indexes.first(where: { $0.path == path })
        else { return nil }
        return .ordered(index, candidates.first { $0.index == index }?.ranges ?? .all)
    }

    /// The path with the fewest records, if they are at most `maximum`.
    private func few(in source: any RecordSource, maximum: Int) throws(CRUDError) -> AccessPath? {
        var path: AccessPath?
        var limit = maximum + 1
        for candidate in candidates {
            let size = try size(candidate, in: source, limit: limit)
            if size < limit {
                limit = size
                path = .ranges(candidate.index, candidate.ranges)
            }
        }
        // A scan of few ids is better than many keys; without an index there is no choice.
        guard !query.prefix.isEmpty, path != nil || ordered != nil else { return path }
        return try source.count(RecordScan(idPrefix: query.prefix), limit: limit) < limit ? .primary : path
    }

    private func size(
        _ candidate: Candidate, in source: any RecordSource, limit: Int
    ) throws(CRUDError) -> Int {
        let end = limits.now() + limits.counting
        var size = 0
        for range in candidate.ranges.ranges where size < limit {
            if limits.now() >= end { return limit }
            let scan = RecordScan(.key(index: candidate.index.number), lower: range.lower, upper: range.upper)
            size += try source.count(scan, limit: limit - size)
        }
        return size
    }
}
