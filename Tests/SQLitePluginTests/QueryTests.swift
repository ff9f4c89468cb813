import CRUDPluginABI
import CRUDTestSupport
import Testing

/// Queries, the indexes that serve them, and how they are kept. What queries find is compared with plain evaluation in
/// ``RandomQueryTests``.
@Suite struct QueryTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path, synchronous: "off")
    }

    private func indexNames() throws -> [String] {
        try Inspector(path).rows("SELECT name FROM sqlite_schema WHERE name LIKE 'crudd_index%' ORDER BY name").map {
            $0[0]
        }
    }

    private func equal(_ property: String, _ literal: String) -> String {
        #"{"op":"=","args":[{"property":"\#(property)"},\#(literal)]}"#
    }

    // MARK: Indexes

    @Test func indexesComeAndGo() throws {
        let collection = try store.collection("users", indexes: ["name", "address.city"])
        #expect(try indexNames() == ["crudd_index_1_name", "crudd_index_2_address.city"])
        #expect(try store.collection("users", indexes: ["age", "address.city"]) == collection)
        #expect(try indexNames() == ["crudd_index_2_address.city", "crudd_index_3_age"])
        // The file remembers.
        let other = try Store(path: path)
        _ = try other.collection("users", indexes: ["address.city", "age", "age"])
        #expect(try indexNames() == ["crudd_index_2_address.city", "crudd_index_3_age"])
        _ = try other.collection("users")
        #expect(try indexNames() == [])
    }

    @Test func pathsThatSQLiteTakesForEqualHaveIndexesOfTheirOwn() throws {
        let paths = ["a", "A", "é", "e\u{301}", "it's", #"x\.y"#, "x.y"]
        let collection = try store.collection("users", indexes: paths)
        #expect(try indexNames().count == paths.count)
        try store.write([.put("1", #"{"a":1}"#), .put("2", #"{"A":1}"#), .put("3", #"{"it's":1}"#)], to: collection)
        let reader = try store.reader()
        for (path, id) in [("a", "1"), ("A", "2"), ("it's", "3")] {
            let result = try reader.query(collection, filter: equal(path, "1"))
            #expect(result.ids == [id] && result.index == path && result.scanned == 1)
        }
    }

    @Test func indexesOfOthersAreLeftAlone() throws {
        let inspector = try Inspector(path)
        _ = try store.collection("users", indexes: ["a"])
        try inspector.execute("CREATE INDEX mine ON users (revision)")
        _ = try store.collection("users")
        _ = try store.collection("others", indexes: ["a"])
        #expect(try inspector.rows("SELECT name FROM sqlite_schema WHERE name = 'mine'") == [["mine"]])
        try store.dropCollection("others")
        #expect(try indexNames() == [])
    }

    @Test(arguments: ["", #"quo"te"#, "new\nline", "a."])
    func namesThatSQLiteCannotFollowAreScanned(path: String) throws {
        let collection = try store.collection("users", indexes: [path, "b"])
        #expect(try indexNames().count == 1)
        #expect(store.logLines.contains { $0.contains("no index by") })
        try store.write([.put("1", #"{"b":1}"#)], to: collection)
        #expect(try store.reader().query(collection, filter: equal("b", "1")).index == "b")
    }

    @Test func anItemThatIsNoJSONLeavesTheTableWithoutIndex() throws {
        _ = try store.collection("users")
        try Inspector(path).execute("INSERT INTO users (id, item) VALUES ('x', '{')")
        let collection = try store.collection("users", indexes: ["a"])
        #expect(try indexNames() == [])
        #expect(store.logLines.contains { $0.contains("malformed JSON") })
        let failure = try failure { _ = try store.reader().query(collection, filter: equal("a", "1")) }
        #expect(failure?.status == CRUDD_CORRUPT)
    }

    @Test func otherProgramsKeepIndexesUpToDate() throws {
        let collection = try store.collection("users", indexes: ["a"])
        try Inspector(path).execute(
            #"INSERT INTO users (id, item) VALUES ('x', '{"a":1}'), ('y', '{"a":[]}'), ('z', '1')"#)
        let result = try store.reader().query(collection, filter: equal("a", "1"))
        #expect(result.ids == ["x"] && result.index == "a")
    }

    @Test func onlyJSONIsIndexed() throws {
        _ = try store.collection("papers", format: "xml", indexes: ["a"])
        _ = try store.collection("boxes", format: "plist", indexes: ["a"])
        #expect(try indexNames() == [])
    }

    @Test func aReaderSeesIndexesThatCameLater() throws {
        let collection = try store.collection("users")
        try store.write([.put("1", #"{"a":1}"#), .put("2", #"{"a":2}"#)], to: collection)
        let reader = try store.reader()
        #expect(try reader.query(collection, filter: equal("a", "2")).index == "")
        _ = try store.collection("users", indexes: ["a"])
        let result = try reader.query(collection, filter: equal("a", "2"))
        #expect(result.ids == ["2"] && result.index == "a" && result.scanned == 1)
        _ = try store.collection("users")
        let scan = try reader.query(collection, filter: equal("a", "2"))
        #expect(scan.ids == ["2"] && scan.index == "" && scan.scanned == 2)
    }

    // MARK: Queries

    @Test func lookAtNoMoreThanTheyNeed() throws {
        let collection = try store.collection("users", indexes: ["n", "group"])
        try store.write(
            (0..<1000).map { .put("id\($0 + 1000)", #"{"n":\#($0),"group":\#($0 % 3)}"#) }, to: collection)
        let reader = try store.reader()
        let point = try reader.query(collection, filter: equal("group", "1"), limit: 10)
        #expect(point.ids.first == "id1001" && point.records.count == 10 && point.scanned == 10)
        let range = #"{"op":"between","args":[{"property":"n"},5,7]}"#
        #expect(try reader.query(collection, filter: range).scanned == 3)
        #expect(try reader.count(collection, filter: range) == 3)
        let prefixed = try reader.query(collection, filter: equal("group", "1"), prefix: "id19")
        #expect(prefixed.scanned == prefixed.records.count)
        for (order, ids) in [("asc", ["id1000", "id1001"]), ("desc", ["id1999", "id1998"])] {
            let sorted = try reader.query(collection, sort: #"[{"property":"n","order":"\#(order)"}]"#, limit: 2)
            #expect(sorted.ids == ids && sorted.index == "n" && sorted.scanned == 2)
        }
        let grouped = try reader.query(
            collection, sort: #"[{"property":"group","order":"desc"}]"#,
            after: #"{"values":[2],"id":"id1500"}"#, limit: 3)
        #expect(grouped.ids == ["id1503", "id1506", "id1509"] && grouped.scanned == 3)
        #expect(try reader.query(collection, filter: "false").records.isEmpty)
    }

    @Test func emitWhatIsAskedFor() throws {
        let collection = try store.collection("users", indexes: ["n"])
        try store.write((0..<10).map { .put("\($0)", #"{"n":\#(9 - $0)}"#, "r\($0)") }, to: collection)
        let reader = try store.reader()
        let sort = #"[{"property":"n","order":"asc"}]"#
        let first = try reader.query(collection, sort: sort, limit: 2)
        #expect(first.records == [Record(0, "9", #"{"n":0}"#, "r9"), Record(1, "8", #"{"n":1}"#, "r8")])
        let bare = try reader.query(collection, sort: sort, limit: 1, withItems: false)
        #expect(bare.records == [Record(0, "9", "", "r9")])
        #expect(try reader.query(collection, sort: sort, stoppingAfter: 3).records.count == 3)
        #expect(try reader.query(collection, stoppingAfter: 3).records.count == 3)
        #expect(try reader.query(collection, limit: 4).ids == ["0", "1", "2", "3"])
        #expect(try reader.query(collection, after: #"{"values":[],"id":"7"}"#).ids == ["8", "9"])
        #expect(try reader.query(collection, after: #"{"values":[],"id":"7"}"#, prefix: "9").ids == ["9"])
        #expect(try reader.query(collection, after: #"{"values":[],"id":"99"}"#).ids == [])
    }

    @Test func stopWhenNobodyWaits() throws {
        let collection = try store.collection("users")
        try store.write((0..<10_000).map { .put("\($0)", "{}") }, to: collection)
        let reader = try store.reader()
        let failure = try failure { _ = try reader.query(collection, filter: equal("a", "1"), questions: 1) }
        #expect(failure?.status == CRUDD_UNAVAILABLE)
        #expect(try reader.query(collection, filter: equal("a", "1")).scanned == 10_000)
    }

    @Test(arguments: [("{", "", ""), ("", "[1]", ""), ("", "", "{}"), ("", "", #"{"values":[1],"id":"x"}"#)])
    func whatIsNotUnderstoodIsRefused(filter: String, sort: String, after: String) throws {
        let collection = try store.collection("users")
        let failure = try failure {
            _ = try store.reader().query(collection, filter: filter, sort: sort, after: after)
        }
        #expect(failure?.status == CRUDD_UNSUPPORTED)
    }
}
