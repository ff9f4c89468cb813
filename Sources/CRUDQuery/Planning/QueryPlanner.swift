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
            query.filter.flatMap { KeyRanges($0, of: index.path, atMost: limits.planning) }
                .map { Candidate(index: index, ranges: $0) }
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

    /// Whether the first slice of a query may well be the last: a small page of the records with one key, or of all
    /// records by id. What has to be done with a long filter before takes too long already.
    static func isQuick(_ query: Query, _ indexes: [QueryIndex]) -> Bool {
        guard query.limit <= quickRecords, query.sort.keys.isEmpty else { return false }
        guard let filter = query.filter else { return true }
        guard query.prefix.isEmpty, filter.isShort(atMost: quickFilterBytes) else { return false }
        let planner = QueryPlanner(query, indexes, .quick)
        return planner.candidates.count == 1 && planner.point != nil
    }

    private static let quickRecords = 100
    private static let quickFilterBytes = 16 << 10

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

extension Filter {
    /// Whether the filter takes no more than so many bytes, about.
    fileprivate func isShort(atMost bytes: Int) -> Bool {
        var rest = bytes
        return fits(into: &rest)
    }

    private func fits(into rest: inout Int) -> Bool {
        rest -= 32
        switch self {
        case .constant, .isNull: break
        case .and(let filters), .or(let filters):
            for filter in filters { if !filter.fits(into: &rest) { return false } }
        case .not(let filter): return filter.fits(into: &rest)
        case .comparison(_, _, let literal): rest -= literal.byteCount
        case .like(_, let pattern): rest -= pattern.utf8.count
        case .between(_, let low, let high): rest -= low.byteCount + high.byteCount
        case .isIn(_, let literals), .arrayContains(_, let literals):
            for literal in literals {
                rest -= 16 + literal.byteCount
                if rest < 0 { return false }
            }
        }
        return rest >= 0
    }
}

extension Literal {
    fileprivate var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .number(let number): number.text.utf8.count
        case .boolean: 1
        }
    }
}
