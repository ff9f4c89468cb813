import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDQuery

/// The records of one collection.
struct Table {
    /// By id, in UTF-8: String's own equality takes canonically equivalent texts for one.
    private var records: [[UInt8]: Record] = [:]
    /// The ids in order; nil: not since the last change of them.
    private var sortedIDs: [[UInt8]]?

    subscript(id: [UInt8]) -> Record? {
        get { records[id] }
        set {
            if (records[id] == nil) != (newValue == nil) { sortedIDs = nil }
            records[id] = newValue
        }
    }

    /// The records as they are now.
    mutating func snapshot() -> TableSnapshot {
        let ids = sortedIDs ?? records.keys.sorted { $0.lexicographicallyPrecedes($1) }
        sortedIDs = ids
        return TableSnapshot(records, ids)
    }
}

/// The records of a table at one time, for the query executor of the daemon. There are no indexes.
final class TableSnapshot: RecordSource {
    private let records: [[UInt8]: Record]
    private let ids: [[UInt8]]

    init(_ records: [[UInt8]: Record], _ ids: [[UInt8]]) {
        self.records = records
        self.ids = ids
    }

    func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        var range = range(scan)
        if let after = scan.after?.id {
            let start = index(after)
            let isThere = start < ids.count && ids[start] == after
            range = range.clamped(to: (isThere ? start + 1 : start)..<ids.count)
        }
        for id in ids[range] {
            guard let record = records[id] else { continue }
            let wantsMore = id.withUnsafeBytes { id in
                record.item.bytes.withUnsafeBytes { item in
                    Array(record.revision.text.utf8).withUnsafeBytes { revision in
                        visitor.visit(FoundRecord(id: id, item: item, revision: revision))
                    }
                }
            }
            if !wantsMore { return }
        }
    }

    func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int { range(scan).count }

    /// The positions of the ids within a scan's bounds.
    private func range(_ scan: RecordScan) -> Range<Int> {
        let lower = index(scan.lower)
        return lower..<max(lower, scan.upper.isEmpty ? ids.count : index(scan.upper))
    }

    /// The position of the first id that is not below a bound.
    private func index(_ bound: [UInt8]) -> Int {
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle].lexicographicallyPrecedes(bound) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension CRUDQuery.Query {
    init(_ selection: RecordSelection) {
        self.init()
        filter = selection.filter
        prefix = Array((selection.prefix ?? "").utf8)
    }

    /// - Throws: `invalid_params` or `limit_exceeded` for a wrong limit, `invalid_query` for a wrong cursor.
    init(_ query: RecordQuery, in collection: [UInt8]) throws(CRUDError) {
        self.init(query.selection)
        sort = query.sort
        if let limit = query.limit { self.limit = limit }
        try Check.limit(limit)
        if let fields = query.fields {
            var json = JSONWriter()
            json.array { paths in for field in fields { paths.string(field.text) } }
            self.fields = try FieldProjection(json: json.bytes.span)
        }
        explains = query.explains
        if let cursor = query.cursor { try resume(from: Array(cursor.text.utf8), in: collection) }
    }
}
