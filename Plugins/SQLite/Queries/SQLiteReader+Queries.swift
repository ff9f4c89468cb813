import CRUDJSON
import CRUDModel
import CRUDPluginKit

extension SQLiteReader {
    func query(_ request: borrowing QueryRequest, of collection: SQLiteCollection) throws(StorageFailure) {
        try walk { (session) throws(StorageFailure) in
            session.trimStatements()
            var query = try Query(request, session, collection)
            try query.run(request)
        }
    }

    func count(
        matching request: borrowing CountRequest, in collection: SQLiteCollection
    ) throws(StorageFailure) -> UInt64 {
        try walk { (session) throws(StorageFailure) in
            session.trimStatements()
            let filter: Filter
            do throws(CRUDError) {
                filter = try Filter(cql2JSON: Span(_bytes: request.filter.bytes))
            } catch {
                throw StorageFailure(.unsupported, error.message)
            }
            let ids = IDRange(after: emptyBytes, prefix: request.prefix)
            var records = try RecordFilter(filter, SortOrder(), after: nil, ids, collection)
            guard case .ranges(let index, let ranges) = try QueryPlanner(session, collection, filter).access() else {
                let row = try session.statement(ids.isUnbounded ? .all : .ids, collection, nil)
                if !ids.isUnbounded { try session.bind(ids, row) }
                return try session.count(row, &records, request)
            }
            var count: UInt64 = 0
            for range in ranges {
                count += try session.count(try session.start(range.run, collection, index, ids), &records, request)
            }
            // Inexact runs may overlap, and a record counts once.
            var seen: Set<Int64> = []
            for run in ranges.compactMap(\.inexactRun) {
                let row = try session.start(run, collection, index, ids)
                defer { row.reset() }
                while try session.step(row) {
                    if seen.insert(row.integer(0)).inserted, try records.matches(row, request) { count += 1 }
                }
            }
            return count
        }
    }
}

extension ReadSession {
    /// Counts the rows of a statement that match.
    fileprivate func count(
        _ row: Statement, _ records: inout RecordFilter, _ request: borrowing CountRequest
    ) throws(StorageFailure) -> UInt64 {
        defer { row.reset() }
        var count: UInt64 = 0
        while try step(row) {
            if try records.matches(row, request) { count += 1 }
        }
        return count
    }
}

extension IDRange {
    /// Whether every id is in it.
    var isUnbounded: Bool { upper == nil && lower == [0] }
}
