import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Synchronization

@testable import CRUDQuery

/// A page as the protocol shows it, taken apart.
struct Page {
    struct Record {
        var id: String
        var item: String
        var revision: String
    }

    var records: [Record]
    var cursor: String?
    var corrupt: [String]
    var index: String?
    var sort: String?
    var scanned: Int?
    /// How many slices it took.
    var slices = 0
    var bytes: Int

    var ids: [String] { records.map(\.id) }

    init(_ result: [UInt8]) throws {
        let result = try JSON(parsing: result)
        guard let elements = result["records"]?.elements else { throw Failure("no records in \(result.text)") }
        records = try elements.map { element in
            guard let id = element["id"]?.string, let revision = element["revision"]?.string
            else { throw Failure("no record: \(element.text)") }
            // With empty `fields` there is no item.
            return Record(id: id, item: element["item"]?.text ?? "", revision: revision)
        }
        cursor = result["cursor"]?.string
        corrupt = (result["corrupt"]?.elements ?? []).compactMap(\.string)
        index = result["plan"]?["index"]?.string
        sort = result["plan"]?["sort"]?.string
        scanned = result["plan"]?["scanned"]?.integer
        bytes = result.text.utf8.count
    }
}

extension TableSource {
    /// Executes a query for one page.
    ///
    /// - Parameter betweenSlices: is called after each slice but the last.
    func page(
        _ query: Query, in target: QueryTarget? = nil, maximumBytes: Int = 1 << 20, timeout: Duration = .seconds(60),
        limits: SearchLimits = SearchLimits(), betweenSlices: () -> Void = {}
    ) throws -> Page {
        let execution = try QueryExecution(
            query, in: target ?? self.target(), maximumBytes: maximumBytes, timeout: timeout, limits: limits)
        var slices = 1
        while try !execution.advance(self, isAbandoned: { false }) {
            slices += 1
            guard slices < 100_000 else { throw Failure("the search does not end") }
            betweenSlices()
        }
        var page = try Page(execution.result)
        page.slices = slices
        return page
    }

    /// The ids of a page, and where the next one begins; nil: there is none.
    ///
    /// - Parameter betweenSlices: is called after each slice but the last.
    func search(
        _ query: Query, maximumBytes: Int = 1 << 20, timeout: Duration = .seconds(3600), limits: SearchLimits,
        betweenSlices: () -> Void = {}
    ) throws -> (ids: [String], next: SortPosition?, path: AccessPath?) {
        let search = try RecordSearch(
            query, .page, in: target(), maximumBytes: maximumBytes, timeout: timeout, limits: limits)
        var slices = 1
        while try !search.advance(self, isAbandoned: { false }) {
            slices += 1
            guard slices < 100_000 else { throw Failure("the search does not end") }
            betweenSlices()
        }
        if search.isOverfull { throw Failure("a record does not fit") }
        return (
            search.records.map { String(decoding: $0.position.id, as: UTF8.self) }, search.continuation, search.path
        )
    }

    func count(_ query: Query, limits: SearchLimits = SearchLimits(), betweenSlices: () -> Void = {}) throws -> Int {
        let execution = try CountExecution(query, in: target(), limits: limits)
        while try !execution.advance(self, isAbandoned: { false }) { betweenSlices() }
        return execution.count
    }
}

extension Query {
    /// A query from the protocol's parameters.
    init(
        filter: String? = nil, prefix: String = "", sort: String? = nil, limit: Int = 1000, fields: String? = nil,
        explain: Bool = true
    ) throws {
        self.init()
        self.filter = try filter.map { try Filter(cql2JSON: $0) }
        self.prefix = Array(prefix.utf8)
        if let sort { self.sort = try SortOrder(json: Array(sort.utf8).span) }
        self.limit = limit
        self.fields = try fields.map { try FieldProjection(json: Array($0.utf8).span) }
        explains = explain
    }

    /// The same query for the next page.
    func resumed(from cursor: String) throws -> Query {
        var query = self
        try query.resume(from: Array(cursor.utf8), in: Array("table".utf8))
        return query
    }
}

extension SearchLimits {
    /// Slices of about so many records: the clock is read for each record and advances by a microsecond every time.
    static func records(_ count: Int) -> SearchLimits {
        let readings = Atomic(0)
        let start = ContinuousClock.now
        var limits = SearchLimits()
        limits.now = { start + .microseconds(readings.add(1, ordering: .relaxed).newValue) }
        limits.recordsPerReading = 1
        limits.slice = .microseconds(count)
        limits.snapshot = .seconds(3600)
        limits.counting = .seconds(3600)
        return limits
    }
}
