import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Synchronization
import Testing

@testable import CRUDQuery

/// What a page has, and where it ends.
@Suite struct PageTests {
    private func table(_ items: [String], indexes: [String] = []) -> TableSource {
        let table = TableSource(indexes)
        for (number, item) in items.enumerated() { table.put("id\(100 + number)", item) }
        return table
    }

    @Test func recordsAsTheProtocolShowsThem() throws {
        let source = SingleRecord(
            id: "i\"d", item: #"{"a":1.50,"b":{"c":[1, 2],"d":null}}"#, revision: "r1", expiresAt: 1_700_000_000_123)
        func result(_ fields: String?) throws -> String {
            let execution = try QueryExecution(
                try Query(fields: fields, explain: false), in: QueryTarget(name: []), maximumBytes: 1000,
                timeout: .seconds(1))
            #expect(try execution.advance(source, isAbandoned: { false }))
            return String(decoding: execution.result, as: UTF8.self)
        }
        let rest = #""revision":"r1","expiresAt":1700000000123}]}"#
        let start = #"{"records":[{"id":"i\"d","item":"#
        #expect(try result(nil) == start + #"{"a":1.50,"b":{"c":[1, 2],"d":null}},"# + rest)
        #expect(try result(#"["b.c"]"#) == start + #"{"b":{"c":[1, 2]}},"# + rest)
        #expect(try result(#"["z"]"#) == start + "{}," + rest)
        #expect(try result("[]") == #"{"records":[{"id":"i\"d","# + rest)
        // Even where nothing of it is shown: what cannot be decoded is left out.
        #expect(source.itemsWereWanted == [true, true, true, true])
    }

    @Test func revisionsThatAreNotText() throws {
        let source = SingleRecord(id: "x", item: "1", revision: "é")
        source.revision = [0x22, 0xFF]
        let execution = try QueryExecution(
            Query(), in: QueryTarget(name: []), maximumBytes: 1000, timeout: .seconds(1))
        #expect(try execution.advance(source, isAbandoned: { false }))
        #expect(try Page(execution.result).records[0].revision == "\"\u{FFFD}")
    }

    /// Without a filter the last page has no cursor; with one a full page has.
    @Test(arguments: [nil, #"[{"property":"a"}]"#])
    func cursors(sort: String?) throws {
        let table = table((0..<6).map { #"{"a":\#($0)}"# })
        let filter = #"{"op":">=","args":[{"property":"a"},0]}"#
        for limit in 1...7 {
            #expect(try table.page(Query(sort: sort, limit: limit)).cursor == nil || limit < 6)
            #expect(try table.page(Query(filter: filter, sort: sort, limit: limit)).cursor == nil || limit <= 6)
            for condition in [nil, filter] {
                var query = try Query(filter: condition, sort: sort, limit: limit)
                var ids: [String] = []
                while true {
                    let page = try table.page(query)
                    ids += page.ids
                    guard let cursor = page.cursor else { break }
                    query = try query.resumed(from: cursor)
                }
                #expect(ids == (100..<106).map { "id\($0)" })
            }
        }
    }

    /// As this version writes them, and as the one before did.
    @Test(arguments: [
        "QuTtIu8CA8B7InZhbHVlcyI6WzFdLCJpZCI6IngifQ", "NWJiNWE2YWZkOGJjMDYzZnsidmFsdWVzIjpbMV0sImlkIjoieCJ9",
    ])
    func cursorsStayGood(text: String) throws {
        var query = try Query(
            filter: #"{"op":"=","args":[{"property":"a"},1]}"#, prefix: "x", sort: #"[{"property":"a"}]"#)
        let position = SortPosition(values: [.number(.integer(1))], id: Array("x".utf8))
        let cursor = query.cursor(behind: position, in: Array("table".utf8))
        #expect(String(decoding: cursor, as: UTF8.self) == "QuTtIu8CA8B7InZhbHVlcyI6WzFdLCJpZCI6IngifQ")
        try query.resume(from: Array(text.utf8), in: Array("table".utf8))
        #expect(query.position == position)
        for (change, collection) in [("", "other"), ("filter", "table"), ("prefix", "table"), ("sort", "table")] {
            var other = query
            if change == "filter" { other.filter = nil }
            if change == "prefix" { other.prefix = [] }
            if change == "sort" { other.sort = SortOrder() }
            let error = #expect(throws: CRUDError.self) {
                try other.resume(from: Array(text.utf8), in: Array(collection.utf8))
            }
            #expect(error?.code == .invalidQuery)
        }
    }

    // MARK: Bytes

    @Test(arguments: [nil, #"[{"property":"a","order":"desc"}]"#])
    func pagesEndEarlyByBytes(sort: String?) throws {
        let text = String(repeating: "x", count: 300)
        let table = table((0..<20).map { #"{"a":\#($0),"text":"\#(text)"}"# })
        for maximumBytes in [800, 1000, 2000, 5000] {
            var query = try Query(sort: sort)
            var ids: [String] = []
            var pages = 0
            while true {
                let page = try table.page(query, maximumBytes: maximumBytes)
                #expect(page.bytes <= maximumBytes && !page.ids.isEmpty)
                pages += 1
                ids += page.ids
                guard let cursor = page.cursor else { break }
                query = try query.resumed(from: cursor)
            }
            let expected = (100..<120).map { "id\($0)" }
            #expect(ids == (sort == nil ? expected : expected.reversed()))
            #expect(pages > 20 * 330 / maximumBytes)
        }
    }

    @Test(arguments: [nil, #"[{"property":"a"}]"#])
    func notEvenOneRecordFits(sort: String?) throws {
        let table = table([#"{"a":2}"#, #"{"a":1,"text":"\#(String(repeating: "x", count: 1000))"}"#])
        let query = try Query(sort: sort)
        let first = try? table.page(query, maximumBytes: 500)
        #expect(first?.ids == (sort == nil ? ["id100"] : nil))
        let rest = try first.map { try query.resumed(from: $0.cursor ?? "") } ?? query
        let error = #expect(throws: CRUDError.self) { try table.page(rest, maximumBytes: 500) }
        #expect(error?.code == .limitExceeded && error?.details.limit == "frame_bytes" && error?.details.maximum == 500)
        #expect(try table.page(Query(sort: sort, fields: #"["a"]"#), maximumBytes: 500).ids.count == 2)
    }

    // MARK: Time

    /// A page whose order is that of a scan ends early, with what has been found and a cursor behind what was scanned.
    @Test(arguments: [
        nil, #"[{"property":"a"}]"#, #"[{"property":"a","order":"desc"}]"#, #"[{"property":"a"},{"property":"b"}]"#,
    ])
    func pagesEndEarlyByTime(sort: String?) throws {
        let table = table((0..<300).map { #"{"a":\#($0 / 2),"b":\#(-$0)}"# }, indexes: ["a"])
        let filter = #"{"op":"in","args":[{"property":"b"},[-7,-200]]}"#
        var query = try Query(filter: filter, sort: sort)
        var limits = SearchLimits.records(20)
        limits.few = 0
        let whole = try table.page(query, limits: limits)
        #expect(whole.slices > 10 && Set(whole.ids) == ["id107", "id300"] && whole.cursor == nil)
        var pages: [Page] = []
        while true {
            pages.append(try table.page(query, timeout: .microseconds(40), limits: limits))
            guard let cursor = pages[pages.count - 1].cursor else { break }
            query = try query.resumed(from: cursor)
        }
        #expect(pages.flatMap(\.ids) == whole.ids)
        #expect(pages.count > 3 && pages.contains { $0.ids.isEmpty && $0.cursor != nil })
    }

    /// One that needs all records does not.
    @Test func sortedPagesDoNotEndEarly() throws {
        let table = table((0..<300).map { #"{"a":\#($0)}"# })
        let page = try table.page(
            Query(sort: #"[{"property":"a","order":"desc"}]"#, limit: 1), timeout: .zero, limits: .records(20))
        #expect(page.ids == ["id399"] && page.slices > 10)
    }

    @Test func anAbandonedSearchEndsItsSlice() throws {
        let table = table((0..<10).map { #"{"a":\#($0)}"# }, indexes: ["a"])
        let execution = try QueryExecution(
            Query(filter: #"{"op":"in","args":[{"property":"a"},[1,2,3]]}"#), in: table.target(), maximumBytes: 1000,
            timeout: .seconds(1))
        #expect(try !execution.advance(table, isAbandoned: { true }))
        #expect(table.visited == 0)
    }

    // MARK: JSON

    @Test(arguments: [
        #"{"limit":1000}"#,
        #"{"filter":{"op":"=","args":[{"property":"a"},1e400]},"prefix":"x\"","#
            + #""sort":[{"property":"b\\.c","order":"desc"}],"#
            + #""position":{"values":["é"],"id":"i"},"limit":7,"fields":["a","b.c"],"explain":true}"#,
        #"{"position":{"values":[],"id":"i"},"limit":1,"fields":[]}"#,
    ])
    func queriesAreWrittenAndReadBack(json: String) throws {
        let query = try Query(json: Array(json.utf8).span)
        var writer = JSONWriter()
        query.write(to: &writer)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == json)
    }

    @Test(arguments: [
        "", "[]", "{", #"{"limit":0}"#, #"{"limit":"1"}"#, #"{"other":1}"#, #"{"filter":1,"limit":1}"#,
        #"{"position":{"values":[1],"id":"i"},"limit":1}"#, #"{"fields":1,"limit":1}"#, #"{"prefix":1}"#,
        #"{"limit":1} 1"#,
    ])
    func anythingElseIsRefused(json: String) {
        #expect(throws: CRUDError.self) { try Query(json: Array(json.utf8).span) }
    }
}

/// A collection of one record.
private final class SingleRecord: RecordSource {
    let id: [UInt8]
    let item: [UInt8]
    var revision: [UInt8]
    let expiresAt: Int64
    private(set) var itemsWereWanted: [Bool] = []

    init(id: String, item: String, revision: String, expiresAt: Int64 = 0) {
        self.id = Array(id.utf8)
        self.item = Array(item.utf8)
        self.revision = Array(revision.utf8)
        self.expiresAt = expiresAt
    }

    func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        itemsWereWanted.append(scan.withItems)
        id.withUnsafeBytes { id in
            (scan.withItems ? item : []).withUnsafeBytes { item in
                revision.withUnsafeBytes { revision in
                    _ = visitor.visit(FoundRecord(id: id, item: item, revision: revision, expiresAt: expiresAt))
                }
            }
        }
    }

    func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int { 1 }
}
