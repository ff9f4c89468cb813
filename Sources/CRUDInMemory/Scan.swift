import CRUDClient
import CRUDJSON
import CRUDModel

/// One page of a query, by looking at every record: filters and sort orders are those of the daemon.
struct Scan {
    private let query: RecordQuery
    private let limit: Int
    /// Only records behind this position.
    private let start: SortPosition?
    /// What a cursor must have been made for.
    private let fingerprint: String

    init(_ query: RecordQuery, of collection: String) throws(CRUDError) {
        self.query = query
        limit = query.limit ?? 1000
        guard limit >= 1 else {
            throw CRUDError(.invalidParams, "`limit` is below 1", details: CRUDError.Details(member: "limit"))
        }
        guard limit <= Check.queryLimit else {
            throw Check.limit("query_limit", Check.queryLimit, "`limit` is above \(Check.queryLimit)")
        }
        var hasher = Hasher()
        hasher.combine(Array(collection.utf8))
        hasher.combine(query.selection)
        hasher.combine(query.sort)
        let fingerprint = String(UInt(bitPattern: hasher.finalize()), radix: 16) + ":"
        self.fingerprint = fingerprint
        start = try query.cursor.map { cursor throws(CRUDError) in
            try Self.position(cursor, fingerprint, count: query.sort.keys.count)
        }
    }

    func page(of records: some Collection<Record>) throws -> (records: [Record], next: Cursor?) {
        var reader = SortValueReader(query.sort)
        var found: [(position: SortPosition, record: Record)] = []
        for record in try query.selection.matching(records) {
            let position = SortPosition(values: try reader.values(of: record.item.bytes.span), id: record.id)
            if let start, query.sort.compare(position, start) <= 0 { continue }
            found.append((position, record))
        }
        found.sort { query.sort.compare($0.position, $1.position) < 0 }
        let page = found.prefix(limit)
        let isLast = page.count == found.count
        let next =
            isLast ? nil : page.last.map { Cursor(fingerprint + String(decoding: $0.position.json, as: UTF8.self)) }
        return (page.map(\.record), next)
    }

    private static func position(_ cursor: Cursor, _ fingerprint: String, count: Int) throws(CRUDError) -> SortPosition
    {
        guard cursor.text.utf8.starts(with: fingerprint.utf8) else {
            throw CRUDError(.invalidQuery, "the cursor belongs to another query")
        }
        let json = Array(cursor.text.utf8.dropFirst(fingerprint.utf8.count))
        return try SortPosition(json: json.span, count: count)
    }
}

extension RecordSelection {
    /// Those of `records` that are meant.
    func matching(_ records: some Collection<Record>) throws -> [Record] {
        let prefix = Array((prefix ?? "").utf8)
        var evaluator = try FilterEvaluator(filter ?? .constant(true))
        var matching: [Record] = []
        for record in records where record.id.starts(with: prefix) {
            if try evaluator.matches(record.item.bytes.span) { matching.append(record) }
        }
        return matching
    }
}
