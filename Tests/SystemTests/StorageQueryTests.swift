import CRUDTestSupport
import Testing

/// Random filters and sorts on every adapter, wherever its plugin runs, with and without indexes: page after page, each
/// finds what the reference says.
@Suite(.daemon(QueryCell.configuration)) struct StorageQueryTests {
    @Test(arguments: QueryCell.all)
    func pagesAreThoseOfTheReference(cell: QueryCell) throws {
        let connection = try Daemon.shared.connect()
        var served = 0
        for phase in try QuerySample.phases.get() {
            let replies = try connection.pipeline(phase.writes(to: cell.collection))
            for reply in replies where reply.result == nil { Issue.record("\(reply)") }
            for query in phase.queries {
                let found = try search(query, cell.collection, connection)
                if found.ids != query.expected { Issue.record("\(query.members): \(found.ids) != \(query.expected)") }
                served += found.isServedByIndex ? 1 : 0
                let selection = Connection.selection(cell.collection, query.selection)
                let count = try connection.call("record.count", selection).result?["count"]?.integer
                if count != query.expected.count {
                    Issue.record("\(query.selection): counted \(count ?? -1), expected \(query.expected.count)")
                }
            }
        }
        #expect((served > 10) == (cell.isIndexed && cell.canIndex), "indexes have served \(served) queries")

        let last = try #require(try QuerySample.phases.get().last)
        let deletion = try #require(last.queries.first { (1..<last.ids.count).contains($0.expected.count) })
        let deleted = try connection.call(
            "record.deleteMatching", Connection.selection(cell.collection, deletion.selection))
        #expect(deleted.result?["deleted"]?.integer == deletion.expected.count, "\(deleted)")
        let rest = try connection.allRecords(cell.collection, "{}", limit: 1000).compactMap { $0["id"]?.string }
        #expect(rest == last.ids.filter { !deletion.expected.contains($0) })
    }

    /// The ids on all pages of a query.
    private func search(
        _ query: QuerySample.Query, _ collection: String, _ connection: Connection
    ) throws -> (ids: [String], isServedByIndex: Bool) {
        var ids: [String] = []
        var isServedByIndex = false
        var cursor: String?
        repeat {
            let more = cursor.map { #","cursor":\#($0)}"# } ?? "}"
            let reply = try connection.query(collection, query.members.dropLast() + more)
            guard let records = reply.result?["records"]?.elements else { throw Failure("\(query.members): \(reply)") }
            if records.count > query.limit { Issue.record("\(records.count) records: \(query.members)") }
            ids += records.compactMap { $0["id"]?.string }
            if reply.result?["plan"]?["index"]?.isNull == false { isServedByIndex = true }
            cursor = reply.result?["cursor"]?.text
        } while cursor != nil && ids.count <= query.expected.count
        return (ids, isServedByIndex)
    }
}

/// A collection of one backend of ``StorageMatrix``.
struct QueryCell: Sendable, CustomTestStringConvertible {
    let backend: String
    let isIndexed: Bool

    var collection: String { "\(backend)-\(isIndexed ? "indexed" : "plain")" }
    var testDescription: String { collection }

    /// Whether the adapter keeps index keys.
    var canIndex: Bool { ["sqlite", "memory", "log", "c", "postgresql"].contains(backend.prefix { $0 != "-" }) }

    static let all = StorageMatrix.cells.filter { $0.format == "json" }.flatMap { place in
        [false, true].map { QueryCell(backend: place.backend, isIndexed: $0) }
    }

    static let configuration = {
        var configuration = StorageMatrix.configuration
        configuration.collections = all.map { cell in
            let indexes = #"[a, b, c, a.b, "é", "e\u0301", 'x\.y']"#
            return "\(cell.collection): {backend: \(cell.backend)\(cell.isIndexed ? ", indexes: \(indexes)" : "")}"
        }.joined(separator: "\n")
        return configuration
    }()
}

/// Random records, and queries with what they must find.
private struct QuerySample: Sendable {
    struct Query: Sendable {
        /// Filter and prefix.
        let selection: String
        let members: String
        let limit: Int
        let expected: [String]
    }

    /// Items by id; nil for records that are deleted.
    private let changes: [(id: String, item: String?)]
    /// The ids that are there then, in order.
    let ids: [String]
    let queries: [Query]

    /// New records, and then changes to some of them.
    static let phases = Result { try makePhases() }

    func writes(to collection: String) -> [(method: String, params: String)] {
        changes.map { change in
            let params = Connection.params(collection, change.id, item: change.item)
            return (change.item == nil ? "record.delete" : "record.upsert", params)
        }
    }

    private static func makePhases() throws -> [QuerySample] {
        var author = QueryAuthor(seed: 2026)
        let ids = (0..<120).map { author.pick(["", "a", "b", "é", "😀", "a/", "\u{10FFFF}"]) + "\($0)" }
        var items: [String: String] = [:]
        return try (0..<2).map { phase in
            var changes: [(id: String, item: String?)] = []
            for id in ids where phase == 0 || author.number(below: 3) == 0 {
                let isDeleted = phase > 0 && author.number(below: 4) == 0
                let item = isDeleted ? nil : item(&author)
                changes.append((id, item))
                items[id] = item
            }
            let records = try items.map { ReferenceTable.Record(id: $0.key, item: try JSON(parsing: $0.value)) }
            let table = ReferenceTable(records)
            return QuerySample(
                changes: changes, ids: try table.ids(filter: nil, prefix: "", sort: nil),
                queries: try (0..<30).map { _ in try query(in: table, &author) })
        }
    }

    private static func item(_ author: inout QueryAuthor) -> String {
        // Some values are too long for a key, and some tie.
        switch author.number(below: 12) {
        case 0: #"{"a":"\#(String(repeating: "x", count: 508 + author.number(below: 6)))"}"#
        case 1...3: #"{"a":\#(author.number(below: 3)),"b":"\#(author.number(below: 2))"}"#
        default: author.item()
        }
    }

    private static func query(in table: ReferenceTable, _ author: inout QueryAuthor) throws -> Query {
        let filter = author.number(below: 6) == 0 ? nil : author.filter(depth: author.number(below: 3))
        let prefix = author.number(below: 5) == 0 ? author.pick(["a", "é", "a/1", "x", "\u{10FFFF}"]) : ""
        let sort = author.number(below: 3) == 0 ? nil : author.sort()
        let limit = author.pick([3, 30, 300])
        let selection = [#""prefix":\#(JSON.quote(prefix))"#] + (filter.map { [#""filter":\#($0)"#] } ?? [])
        let more = (sort.map { [#""sort":\#($0)"#] } ?? []) + [#""limit":\#(limit),"explain":true"#]
        return Query(
            selection: "{\(selection.joined(separator: ","))}",
            members: "{\((selection + more).joined(separator: ","))}", limit: limit,
            expected: try table.ids(filter: filter, prefix: prefix, sort: sort))
    }
}
