import CRUDModel

/// A way to the records that a filter can be true for.
enum AccessPath {
    /// Every record, by id.
    case primary
    /// Every record, in the order that costs least.
    case every
    /// The records with one key, by id.
    case point(QueryIndex, key: [UInt8])
    /// A few records, by their keys, all of them in one snapshot: what is written meanwhile may move a record from a
    /// range that has not been scanned into one that has.
    case ranges(QueryIndex, KeyRanges)
    /// Along an index that has the order of the sort's first property. A record keeps its place as long as its sort
    /// values stay the same.
    case ordered(QueryIndex, KeyRanges)

    var index: QueryIndex? {
        switch self {
        case .primary, .every: nil
        case .point(let index, _), .ranges(let index, _), .ordered(let index, _): index
        }
    }

    /// Whether all records must be scanned in one snapshot.
    var needsOneSnapshot: Bool { if case .ranges = self { true } else { false } }
}

/// A scan on an access path.
struct PlannedScan {
    /// How far the order of the scan is that of the query.
    enum Ordering {
        case none
        /// By the sort's first property alone: records that tie in it come in any order.
        case grouped
        case full
    }

    var scan: RecordScan
    var ordering: Ordering
    /// The scan ends before this id; nil: at its upper bound.
    var endID: [UInt8]?

    init(_ scan: RecordScan, _ ordering: Ordering, endID: [UInt8]? = nil) {
        self.scan = scan
        self.ordering = ordering
        self.endID = endID
    }
}

extension AccessPath {
    /// The scans, one after the other, for the records of a query behind its position.
    func scans(for query: Query) -> [PlannedScan] {
        switch self {
        case .primary:
            var scan = RecordScan(idPrefix: query.prefix)
            guard query.sort.keys.isEmpty else { return [PlannedScan(scan, .none)] }
            if let id = query.position?.id, !id.isEmpty { scan.after = ([], id) }
            return [PlannedScan(scan, .full)]
        case .every:
            var scan = RecordScan(idPrefix: query.prefix)
            scan.order = .any
            return [PlannedScan(scan, .none)]
        case .point(let index, let key):
            return [PlannedScan(Self.point(index, key, after: query.position?.id), .full)]
        case .ranges(let index, let ranges):
            return ranges.ranges.map { PlannedScan(Self.scan(index, $0), .none) }
        case .ordered(let index, let ranges):
            guard let first = query.sort.keys.first else { return [] }
            let isOnly = query.sort.keys.count == 1
            return first.isDescending
                ? Self.descending(index, ranges, query.position, isOnly: isOnly)
                : Self.ascending(index, ranges, query.position, isOnly: isOnly)
        }
    }

    private static func scan(_ index: QueryIndex, _ range: KeyRange) -> RecordScan {
        RecordScan(.key(index: index.number), lower: range.lower, upper: range.upper)
    }

    /// The records with one key, by id.
    static func point(_ index: QueryIndex, _ key: [UInt8], after id: [UInt8]?) -> RecordScan {
        var scan = scan(index, KeyRange(lower: key, upper: IndexKey.successor(key)))
        if let id, !id.isEmpty { scan.after = (key, id) }
        return scan
    }

    /// - Parameter isOnly: whether the sort has no other property, so that ties come by id.
    private static func ascending(
        _ index: QueryIndex, _ ranges: KeyRanges, _ position: SortPosition?, isOnly: Bool
    ) -> [PlannedScan] {
        let ordering: PlannedScan.Ordering = isOnly ? .full : .grouped
        guard let position, let value = position.values.first else {
            return ranges.ranges.map { PlannedScan(scan(index, $0), ordering) }
        }
        let bound = IndexKey.bound(value)
        let lower = bound.isExact ? bound.key : IndexKey.successor(bound.key)
        let rest = ranges.intersection(KeyRanges(lower: lower, upper: []))
        return rest.ranges.map { range in
            var scan = scan(index, range)
            if isOnly, bound.isExact, range.lower == bound.key, !position.id.isEmpty {
                scan.after = (bound.key, position.id)
            }
            return PlannedScan(scan, ordering)
        }
    }

    /// A reverse scan has the records of one key by id descending, whereas ties come by id ascending.
    private static func descending(
        _ index: QueryIndex, _ ranges: KeyRanges, _ position: SortPosition?, isOnly: Bool
    ) -> [PlannedScan] {
        var scans: [PlannedScan] = []
        var rest = ranges
        if let position, let value = position.values.first {
            let bound = IndexKey.bound(value)
            var upper = IndexKey.successor(bound.key)
            if isOnly, bound.isExact {
                upper = bound.key
                if ranges.ranges.contains(where: { $0.contains(bound.key) }) {
                    scans.append(PlannedScan(point(index, bound.key, after: position.id), .full))
                }
            }
            rest = ranges.intersection(KeyRanges(lower: [], upper: upper))
        }
        return scans
            + rest.ranges.reversed().map { range in
                var scan = scan(index, range)
                scan.isReversed = true
                return PlannedScan(scan, .grouped)
            }
    }
}
