import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// Random filters and sorts over a table of everything that is easily got wrong, with and without indexes and with
/// records that have no key: page after page, the executor finds what the reference says. A failure names its seed.
@Suite struct RandomQueryTests {
    private static let indexes = ["a", "b", "c", "a.b", "é", "e\u{301}", "", #"x\.y"#]

    private struct Request {
        var filter: String?
        var prefix: String
        var sort: String?
        var limit: Int

        init(_ author: inout QueryAuthor) {
            filter = author.number(below: 4) == 0 ? nil : author.filter(depth: author.number(below: 3))
            prefix = author.number(below: 5) == 0 ? author.pick(["a", "é", "a/1", "x", "\u{10FFFF}"]) : ""
            sort = author.number(below: 3) == 0 ? nil : author.sort()
            limit = 1 + author.number(below: author.pick([2, 10, 60]))
        }

        func query() throws -> Query { try Query(filter: filter, prefix: prefix, sort: sort, limit: limit) }
    }

    private static func id(_ number: Int, _ author: inout QueryAuthor) -> String {
        author.pick(["", "a", "b", "é", "😀", "a/", "\u{10FFFF}"]) + "\(number)"
    }

    private static func item(_ author: inout QueryAuthor) -> String {
        // Some values are too long for a key, and some tie.
        switch author.number(below: 12) {
        case 0:
            #"{"a":"\#(String(repeating: "x", count: 508 + author.number(below: 6)))","b":\#(author.number(below: 3))}"#
        case 1...3: #"{"a":\#(author.number(below: 3)),"b":"\#(author.number(below: 2))"}"#
        default: author.item()
        }
    }

    private static func table(_ count: Int, isIndexed: Bool, unkeyed: Int, _ author: inout QueryAuthor) -> TableSource {
        let table = TableSource(isIndexed ? indexes : [])
        for number in 0..<count {
            let isKeyed = author.number(below: 100) >= unkeyed
            table.put(id(number, &author), item(&author), isKeyed: isKeyed)
        }
        return table
    }

    /// Limits under which small tables go through every access path in tiny slices.
    private static func limits(_ author: inout QueryAuthor) -> SearchLimits {
        var limits = SearchLimits.records(author.pick([1, 2, 5, 20, 1000]))
        limits.few = author.pick([0, 3, 10, 10_000])
        limits.many = author.pick([0, 10, 10_000])
        limits.maximumUnkeyed = author.pick([0, 5, 10_000])
        limits.maximumTies = author.pick([1, 3, 256])
        if author.number(below: 3) == 0 { limits.snapshot = .microseconds(author.number(below: 20)) }
        if author.number(below: 2) == 0 {
            limits.longRecords = .handedOver(BusyExecutor(refusals: author.pick([0, 1, 3])))
            limits.longWork = author.pick([0, 40, 200])
            limits.maximumLongBytes = author.pick([0, 500, 1 << 20])
            // Where there is none, a search begins again and holds what it needs.
            if author.number(below: 2) == 0 { limits.memory = SearchMemory(bytes: author.pick([0, 500, 2000])) }
        }
        return limits
    }

    // MARK: Unchanged tables

    @Test(arguments: 1...16 as ClosedRange<UInt64>)
    func pagesAreThoseOfTheReference(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed)
        let table = Self.table(60, isIndexed: seed % 4 != 0, unkeyed: author.pick([0, 10, 50]), &author)
        let reference = try ReferenceTable(table)
        var served = 0
        for round in 0..<40 {
            let request = Request(&author)
            let limits = Self.limits(&author)
            let expected = try reference.ids(filter: request.filter, prefix: request.prefix, sort: request.sort)
            let timeout: Duration = author.number(below: 4) == 0 ? .microseconds(10) : .seconds(3600)
            let maximumBytes = author.number(below: 4) == 0 ? 8000 : 1 << 20
            let context = Comment(rawValue: "\(request) \(limits), seed \(seed), round \(round)")
            if author.number(below: 4) == 0 {
                #expect(try table.count(request.query(), limits: limits) == expected.count, context)
                continue
            }
            var query = try request.query()
            var ids: [String] = []
            while true {
                let page = try table.search(query, maximumBytes: maximumBytes, timeout: timeout, limits: limits)
                ids += page.ids
                if page.ids.count > request.limit { Issue.record("\(page.ids.count) records, \(context.rawValue)") }
                if page.path?.index != nil { served += 1 }
                guard let next = page.next, ids.count <= expected.count else { break }
                query.position = next
            }
            if ids != expected { Issue.record("\(ids) instead of \(expected): \(context.rawValue)") }
        }
        #expect(seed % 4 == 0 ? served == 0 : served > 0)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func deletesWhatTheReferenceSays(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed)
        for round in 0..<10 {
            let table = Self.table(300, isIndexed: seed % 4 != 0, unkeyed: author.pick([0, 10]), &author)
            let request = Request(&author)
            let expected = try ReferenceTable(table).ids(filter: request.filter, prefix: request.prefix, sort: nil)
            let execution = try MatchExecution(try request.query(), in: table.target(), limits: Self.limits(&author))
            var deleted: [String] = []
            var isLast = false
            while !isLast {
                isLast = try execution.find(table, isAbandoned: { false })
                #expect(execution.found.count <= 256)
                for (position, match) in execution.found.enumerated() {
                    #expect(match.revision == table.revision(match.id))
                    if author.number(below: 100) == 0 {
                        // Somebody has changed it meanwhile: it is found again, and those behind it.
                        execution.rewind(to: position)
                        isLast = false
                        break
                    }
                    deleted.append(String(decoding: match.id, as: UTF8.self))
                    table.remove(match.id)
                }
            }
            if deleted != expected {
                Issue.record("\(deleted) instead of \(expected): \(request), seed \(seed), round \(round)")
            }
        }
    }

    // MARK: Changes between slices

    /// What a record has been, while pages were being read, as far as the query can tell.
    private struct History {
        var versions: [String]
        var wasAbsent = false
    }

    /// A record whose filter outcome and sort values stay the same is returned once if it matches, and in its place;
    /// one that does not match is not.
    @Test(arguments: 1...24 as ClosedRange<UInt64>)
    func unchangedRecordsAreFoundOnce(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed)
        for round in 0..<10 {
            let table = Self.table(40, isIndexed: seed % 6 != 0, unkeyed: author.pick([0, 10, 50]), &author)
            let request = Request(&author)
            var limits = Self.limits(&author)
            limits.slice = .microseconds(author.pick([1, 5, 20]))
            var histories: [String: History] = [:]
            for id in table.ids {
                let item = String(decoding: table.item(id) ?? [], as: UTF8.self)
                histories[String(decoding: id, as: UTF8.self)] = History(versions: [item])
            }
            func change() {
                guard author.number(below: 3) == 0 else { return }
                for _ in 0...author.number(below: 4) { Self.change(table, &histories, &author) }
            }

            var query = try request.query()
            var ids: [String] = []
            for _ in 0..<1000 {
                let page = try table.search(query, limits: limits, betweenSlices: change)
                ids += page.ids
                guard let next = page.next else { break }
                query.position = next
                change()
            }
            let expected = try Self.stable(histories, request)
            let found = ids.filter { expected.outcomes[$0] != nil }
            if found != expected.matching {
                Issue.record("\(found) instead of \(expected.matching): \(request), seed \(seed), round \(round)")
            }
        }
    }

    /// Records that move in the index from one key to another for which the filter is true as well.
    @Test(
        arguments: 1...8 as ClosedRange<UInt64>, [nil, #"[{"property":"b"}]"#, #"[{"property":"b","order":"desc"}]"#])
    func recordsThatMoveInAnIndexAreFoundOnce(seed: UInt64, sort: String?) throws {
        var author = QueryAuthor(seed: seed)
        let table = TableSource(["a"])
        func put(_ number: Int) {
            let isKeyed = author.number(below: 20) > 0
            table.put("\(100 + number)", #"{"a":\#(author.number(below: 100)),"b":\#(number % 7)}"#, isKeyed: isKeyed)
        }
        for number in 0..<80 { put(number) }
        let filter = #"{"op":"between","args":[{"property":"a"},0,99]}"#
        let expected = try ReferenceTable(table).ids(filter: filter, prefix: "", sort: sort)
        var limits = SearchLimits.records(author.pick([1, 5, 20]))
        if author.number(below: 2) == 0 { limits.snapshot = .microseconds(author.number(below: 60)) }
        func move() {
            for _ in 0..<10 { put(author.number(below: 80)) }
        }
        var query = try Query(filter: filter, sort: sort, limit: author.pick([7, 80]))
        var ids: [String] = []
        while true {
            let page = try table.search(query, limits: limits, betweenSlices: move)
            ids += page.ids
            guard let next = page.next else { break }
            query.position = next
            move()
        }
        #expect(ids == expected)
        #expect(try table.count(query, limits: limits, betweenSlices: move) == 80)
    }

    private static func change(
        _ table: TableSource, _ histories: inout [String: History], _ author: inout QueryAuthor
    ) {
        let isNew = author.number(below: 6) == 0
        let id =
            isNew
            ? id(100 + author.number(below: 20), &author) : String(decoding: author.pick(table.ids), as: UTF8.self)
        let bytes = Array(id.utf8)
        switch author.number(below: 8) {
        case 0 where table.ids.count > 10:
            table.remove(bytes)
            histories[id]?.wasAbsent = true
        case 1...3 where !isNew: table.setKeyed(bytes, author.number(below: 2) == 0)
        default:
            var item = item(&author)
            if !isNew, author.number(below: 2) == 0, let current = table.item(bytes), current.last == UInt8(ascii: "}")
            {
                // One more member, which may be one that an index is by, and nothing else.
                let comma = current.count > 2 ? "," : ""
                let member = #"\#(comma)"\#(author.pick(["a", "b", "c", "z"]))":\#(author.number(below: 3))}"#
                item = String(decoding: current.dropLast(), as: UTF8.self) + member
            }
            table.put(bytes, Array(item.utf8), isKeyed: author.number(below: 3) > 0)
            if histories[id] == nil { histories[id] = History(versions: [], wasAbsent: true) }
            histories[id]?.versions.append(item)
        }
    }

    /// The records that a query cannot tell from unchanged ones: whether each matches, and the order of those that do.
    private static func stable(
        _ histories: [String: History], _ request: Request
    ) throws -> (outcomes: [String: Bool], matching: [String]) {
        let filter = try request.filter.map { ReferenceEvaluator(try JSON(parsing: $0)) }
        let order = try ReferenceOrder(request.sort)
        var outcomes: [String: Bool] = [:]
        var matching: [ReferenceTable.Record] = []
        for (id, history) in histories where !history.wasAbsent {
            let versions = try history.versions.map { try JSON(parsing: $0) }
            let matches = versions.map { item in
                id.utf8.starts(with: request.prefix.utf8) && filter.map { $0.evaluate(item) == true } ?? true
            }
            guard Set(matches).count == 1,
                versions.allSatisfy({ order.compareValues($0, versions[0]) == 0 })
            else { continue }
            outcomes[id] = matches[0]
            if matches[0] { matching.append(ReferenceTable.Record(id: id, item: versions[0])) }
        }
        return (outcomes, matching.sorted { order.compare($0, $1) < 0 }.map(\.id))
    }
}
