import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDQuery

/// The records of one collection, and the order in which they have changed.
struct Table {
    /// By id, in UTF-8: String's own equality takes canonically equivalent texts for one.
    private var records: [[UInt8]: Record] = [:]
    /// The ids in order; nil: not since the last change of them.
    private var sortedIDs: [[UInt8]]?
    /// The sequence numbers of deletions, by id.
    private var removals: [[UInt8]: UInt64] = [:]
    /// Every change, by sequence number. Those that are not the last one of their record are superseded, and deleted
    /// from time to time.
    private var log: [(sequence: UInt64, id: [UInt8])] = []
    /// No record expires before.
    private(set) var earliestExpiry: Int?

    subscript(id: [UInt8]) -> Record? { records[id] }

    mutating func put(_ record: Record) {
        if records.updateValue(record, forKey: record.id) == nil { sortedIDs = nil }
        removals[record.id] = nil
        if let expiresAt = record.expiresAt { earliestExpiry = min(expiresAt, earliestExpiry ?? expiresAt) }
        logChange(record.id, record.sequence)
    }

    mutating func remove(_ id: [UInt8], sequence: UInt64) {
        records[id] = nil
        sortedIDs = nil
        removals[id] = sequence
        logChange(id, sequence)
    }

    /// Deletes the records whose time has come.
    mutating func expire(at now: Int, sequence: inout UInt64) {
        guard let earliestExpiry, earliestExpiry <= now else { return }
        let expiring = records.values.compactMap { record in record.expiresAt.map { (id: record.id, time: $0) } }
        for record in expiring.sorted(by: { $0.time < $1.time }) where record.time <= now {
            sequence += 1
            remove(record.id, sequence: sequence)
        }
        self.earliestExpiry = expiring.lazy.map(\.time).filter { $0 > now }.min()
    }

    // MARK: Changes

    /// The last changes of the records that have changed after `sequence`, by sequence number.
    func changes(after sequence: UInt64) -> some Sequence<(sequence: UInt64, id: [UInt8])> {
        var (low, high) = (0, log.count)
        while low < high {
            let middle = (low + high) / 2
            if log[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        return log[low...].lazy.filter(isLast)
    }

    private mutating func logChange(_ id: [UInt8], _ sequence: UInt64) {
        log.append((sequence, id))
        if log.count > 64 + 2 * (records.count + removals.count) { log = log.filter(isLast) }
    }

    private func isLast(_ change: (sequence: UInt64, id: [UInt8])) -> Bool {
        records[change.id]?.sequence ?? removals[change.id] == change.sequence
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
                        visitor.visit(
                            FoundRecord(
                                id: id, item: item, revision: revision, expiresAt: Int64(record.expiresAt ?? 0),
                                sequence: record.sequence))
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
        try RequestCheck.limit(limit)
        fields = try query.fields.map { fields throws(CRUDError) in try FieldProjection(fields) }
        explains = query.explains
        if let cursor = query.cursor { try resume(from: Array(cursor.text.utf8), in: collection) }
    }
}

extension FieldProjection {
    init(_ fields: [PropertyPath]) throws(CRUDError) {
        var json = JSONWriter()
        json.array { paths in for field in fields { paths.string(field.text) } }
        try self.init(json: json.bytes.span)
    }
}
