import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// Which records a query looks at, and in which order they come.
@Suite struct AccessPathTests {
    /// Records 1000…1999 with a number, the reverse of it, a group of three and a text.
    private static func table(indexes: [String] = ["n", "group"], count: Int = 1000) -> TableSource {
        let table = TableSource(indexes)
        for number in 0..<count {
            let item = #"{"n":\#(number),"back":\#(-number),"group":\#(number % 3),"text":"t\#(number % 7)"}"#
            table.put("id\(number + 1000)", item)
        }
        return table
    }

    private static func equal(_ property: String, _ literal: String) -> String {
        #"{"op":"=","args":[{"property":"\#(property)"},\#(literal)]}"#
    }

    private static func sort(_ property: String, _ order: String = "asc") -> String {
        #"[{"property":"\#(property)","order":"\#(order)"}]"#
    }

    /// Limits under which an order is followed rather than a few records sorted.
    private static let followed: SearchLimits = {
        var limits = SearchLimits()
        limits.few = 0
        return limits
    }()

    @Test func withoutIndexAllAreScanned() throws {
        let table = Self.table(indexes: [])
        let filtered = try table.page(Query(filter: Self.equal("n", "7")))
        #expect(
            filtered.ids == ["id1007"] && filtered.index == nil && filtered.sort == "id" && filtered.scanned == 1000)
        let sorted = try table.page(Query(sort: Self.sort("back"), limit: 2))
        #expect(sorted.ids == ["id1999", "id1998"] && sorted.sort == "host" && sorted.scanned == 1000)
    }

    @Test func oneKeyIsFollowedById() throws {
        let table = Self.table()
        let page = try table.page(Query(filter: Self.equal("group", "1"), limit: 10))
        #expect(page.ids.first == "id1001" && page.ids.count == 10 && page.scanned == 10)
        #expect(page.index == "group" && page.sort == "id" && table.counted == 0)
        let next = try table.page(
            try Query(filter: Self.equal("group", "1"), limit: 10).resumed(from: page.cursor ?? ""))
        #expect(next.ids.first == "id1031" && next.scanned == 10)
        let unique = try table.page(Query(filter: Self.equal("n", "7")))
        #expect(unique.ids == ["id1007"] && unique.scanned == 1 && unique.cursor == nil)
    }

    @Test func fewRecordsAreSorted() throws {
        let table = Self.table()
        let range = #"{"op":"between","args":[{"property":"n"},5,7]}"#
        let page = try table.page(Query(filter: range))
        #expect(page.ids == ["id1005", "id1006", "id1007"] && page.scanned == 3 && page.sort == "host")
        let sorted = try table.page(Query(filter: range, sort: Self.sort("back")))
        #expect(sorted.ids == ["id1007", "id1006", "id1005"] && sorted.scanned == 3 && sorted.index == "n")
        let list = #"{"op":"in","args":[{"property":"n"},[900,5,7,7.0,5000]]}"#
        #expect(try table.page(Query(filter: list)).scanned == 3)
        #expect(try table.count(Query(filter: range)) == 3)
    }

    /// The index that leaves the fewest records is taken.
    @Test func theNarrowestIndexServes() throws {
        let table = Self.table()
        let both = #"{"op":"and","args":[\#(Self.equal("group", "1")),{"op":"<","args":[{"property":"n"},10]}]}"#
        let page = try table.page(Query(filter: both))
        #expect(page.ids == ["id1001", "id1004", "id1007"] && page.index == "n" && page.scanned == 10)
    }

    @Test(arguments: [("asc", ["id1000", "id1001"]), ("desc", ["id1999", "id1998"])])
    func anIndexIsFollowedInTheOrderOfTheSort(order: String, ids: [String]) throws {
        let table = Self.table()
        let page = try table.page(Query(sort: Self.sort("n", order), limit: 2))
        #expect(page.ids == ids && page.index == "n" && page.sort == "storage" && page.scanned == 3)
        let filter = #"{"op":">=","args":[{"property":"text"},"t0"]}"#
        let filtered = try table.page(Query(filter: filter, sort: Self.sort("n", order), limit: 2))
        #expect(filtered.ids == ids && (filtered.scanned ?? 0) <= 3)
    }

    /// A range of the sort's own index is all that is followed.
    @Test(arguments: [("asc", ["id1500", "id1501"]), ("desc", ["id1600", "id1599"])])
    func anIndexIsFollowedWithinARange(order: String, ids: [String]) throws {
        let range = #"{"op":"between","args":[{"property":"n"},500,600]}"#
        let page = try Self.table().page(
            Query(filter: range, sort: Self.sort("n", order), limit: 2), limits: Self.followed)
        #expect(page.ids == ids && page.sort == "storage" && (page.scanned ?? 0) <= 3)
    }

    /// The records of a page within a large group of ties are found without the whole group, in both directions.
    @Test(arguments: ["asc", "desc"])
    func manyTies(order: String) throws {
        let table = Self.table(count: 3000)
        let query = try Query(sort: Self.sort("group", order), limit: 10)
        let first = try table.page(query)
        let group = order == "asc" ? 0 : 2
        #expect(first.ids == (0..<10).map { "id\(1000 + group + 3 * $0)" })
        #expect((first.scanned ?? 0) < 300)
        let second = try table.page(query.resumed(from: first.cursor ?? ""))
        #expect(second.ids == (10..<20).map { "id\(1000 + group + 3 * $0)" })
        #expect(second.scanned == 11)
    }

    @Test(arguments: ["asc", "desc"])
    func furtherPropertiesOfASort(order: String) throws {
        let table = Self.table()
        let sort = #"[{"property":"group","order":"\#(order)"},{"property":"n","order":"desc"}]"#
        let page = try table.page(Query(sort: sort, limit: 3))
        let greatest = order == "asc" ? 999 : 998
        #expect(page.ids == (0..<3).map { "id\(1000 + greatest - 3 * $0)" } && page.index == "group")
        #expect((page.scanned ?? 0) < 340)
    }

    @Test func aShortPrefixIsBetterThanALongRange() throws {
        let table = Self.table()
        let query = try Query(filter: Self.equal("group", "1"), prefix: "id19", sort: Self.sort("n"))
        let page = try table.page(query)
        #expect(page.ids.count == 33 && page.index == nil && page.scanned == 100)
        let unsorted = try table.page(Query(filter: Self.equal("group", "1"), prefix: "id19", limit: 5))
        #expect(unsorted.ids == ["id1901", "id1904", "id1907", "id1910", "id1913"] && unsorted.index == nil)
        let narrow = try table.page(Query(filter: Self.equal("n", "905"), prefix: "id19"))
        #expect(narrow.ids == ["id1905"] && narrow.index == "n" && narrow.scanned == 1)
    }

    @Test func manyRecordsWithoutAnOrderAreScannedById() throws {
        let filter = #"{"op":">","args":[{"property":"n"},100]}"#
        let table = Self.table()
        var limits = SearchLimits()
        limits.few = 50
        limits.many = 100
        let page = try table.page(Query(filter: filter, limit: 5), limits: limits)
        #expect(page.ids.first == "id1101" && page.index == nil && page.scanned == 106)
        #expect(try table.count(Query(filter: filter), limits: limits) == 899)
    }

    // MARK: Records without a key

    @Test func unkeyedRecordsAreFound() throws {
        let table = Self.table()
        table.put("id1500x", #"{"n":7,"group":1}"#, isKeyed: false)
        table.put("id1001", #"{"n":-1,"group":5}"#, isKeyed: false)
        let equal = try table.page(Query(filter: Self.equal("n", "7")))
        #expect(equal.ids == ["id1007", "id1500x"] && equal.index == "n" && equal.scanned == 3)
        let point = try table.page(Query(filter: Self.equal("group", "1"), limit: 2))
        #expect(point.ids == ["id1004", "id1007"])
        let first = try table.page(Query(sort: Self.sort("n"), limit: 2))
        #expect(first.ids == ["id1001", "id1000"] && first.index == "n")
        let last = try table.page(Query(sort: Self.sort("group", "desc"), limit: 2))
        #expect(last.ids == ["id1001", "id1002"])
        #expect(try table.count(Query(filter: Self.equal("n", "7"))) == 2)
    }

    @Test func anIndexWithManyUnkeyedRecordsDoesNotServe() throws {
        let table = Self.table(count: 100)
        for id in table.ids.prefix(20) { table.setKeyed(id, false) }
        var limits = SearchLimits()
        limits.maximumUnkeyed = 20
        let filter = Self.equal("n", "7")
        #expect(try table.page(Query(filter: filter), limits: limits).index == "n")
        limits.maximumUnkeyed = 19
        let page = try table.page(Query(filter: filter), limits: limits)
        #expect(page.ids == ["id1007"] && page.index == nil && page.slices > 1)
    }

    @Test func onlyIndexesThatMayServeDo() throws {
        let table = Self.table()
        let page = try table.page(Query(filter: Self.equal("group", "1"), limit: 2), in: table.target(1))
        #expect(page.index == nil)
    }

    /// Where one snapshot does not suffice for the ranges, all records are scanned.
    @Test func rangesThatTakeTooLong() throws {
        let table = Self.table()
        var limits = SearchLimits.records(50)
        limits.snapshot = .microseconds(10)
        let filter = #"{"op":"in","args":[{"property":"group"},[0,1]]}"#
        let page = try table.page(Query(filter: filter, sort: Self.sort("back"), limit: 2), limits: limits)
        #expect(page.ids == ["id1999", "id1997"] && page.index == nil && page.slices > 10)
        #expect(try table.count(Query(filter: filter), limits: limits) == 667)
    }

    @Test func contradictionsScanNothing() throws {
        let table = Self.table()
        let never = #"{"op":"and","args":[\#(Self.equal("n", "1")),\#(Self.equal("n", "2"))]}"#
        let page = try table.page(Query(filter: never))
        #expect(page.ids == [] && page.scanned == 0 && page.index == "n")
    }

    // MARK: Scans by id

    @Test(arguments: [
        ("", ""), ("a", "b"), ("a/", "a0"), ("é", "ê"), ("a\u{7F}", "a\u{80}"), ("\u{D7FF}", "\u{E000}"),
        ("a\u{10FFFF}", "b"), ("\u{10FFFF}\u{10FFFF}", ""),
    ])
    func boundsOfAPrefix(prefix: String, upper: String) {
        let scan = RecordScan(idPrefix: Array(prefix.utf8))
        #expect(scan.lower == Array(prefix.utf8) && scan.upper == Array(upper.utf8))
    }
}
