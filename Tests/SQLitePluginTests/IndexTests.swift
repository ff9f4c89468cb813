import CRUDPluginABI
import CRUDTestSupport
import Testing

/// Indexes by keys that the host makes: their order, how they come and go, and how they are filled.
@Suite struct IndexTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path, synchronous: "off")
    }

    private func indexNames() throws -> [String] {
        let indexes = "type = 'index' AND name LIKE 'crudd_index_%'"
        return try Inspector(path).rows("SELECT name FROM sqlite_schema WHERE \(indexes) ORDER BY name").map { $0[0] }
    }

    // MARK: Scans

    /// Several ids of one key, keys of which one begins like another, and records without.
    private static let keys: [(id: String, key: String)] = [
        ("a", "k1"), ("b", "k2"), ("c", "k1"), ("d", ""), ("é", "k1"), ("f", "k"), ("g", "k1\u{0}"), ("h", "l"),
        ("i", ""),
    ]

    private func sortedIDs(_ isIncluded: (String) -> Bool) -> [String] {
        Self.keys.filter { !$0.key.isEmpty && isIncluded($0.key) }
            .sorted { (left, right) in
                left.key == right.key
                    ? Array(left.id.utf8).lexicographicallyPrecedes(Array(right.id.utf8))
                    : Array(left.key.utf8).lexicographicallyPrecedes(Array(right.key.utf8))
            }.map(\.id)
    }

    @Test(arguments: ["json", "xml", "plist"], [false, true])
    func areScannedInTheOrderOfKeysAndIDs(format: String, isReversed: Bool) throws {
        let clients = try store.collection("clients", format: format, indexes: ["unused", "name"])
        try store.write(Self.keys.map { .put($0.id, "1", keys: ["", $0.key]) }, to: clients)
        let reader = try store.reader()
        func directed(_ ids: [String]) -> [String] { isReversed ? ids.reversed() : ids }
        for (lower, upper) in [
            ("", ""), ("k1", ""), ("", "k1"), ("k1", "k2"), ("k1", "k1"), ("m", ""), ("k0", "k1\u{0}"),
        ] {
            let expected = sortedIDs { key in
                !Array(key.utf8).lexicographicallyPrecedes(Array(lower.utf8))
                    && (upper.isEmpty || Array(key.utf8).lexicographicallyPrecedes(Array(upper.utf8)))
            }
            let range = ScanRange.key(1, from: lower, below: upper, isReversed: isReversed)
            #expect(try reader.ids(clients, range) == directed(expected), "\(lower)..<\(upper)")
            #expect(try reader.count(clients, range) == UInt64(expected.count))
            #expect(try reader.count(clients, range, limit: 2) >= min(2, UInt64(expected.count)))
            // From each place on.
            for (position, id) in directed(expected).enumerated() {
                let key = Self.keys.first { $0.id == id }?.key ?? ""
                let rest = ScanRange.key(1, from: lower, below: upper, after: (key, id), isReversed: isReversed)
                #expect(try reader.ids(clients, rest) == Array(directed(expected).dropFirst(position + 1)))
                #expect(
                    try reader.ids(clients, rest, limit: 1)
                        == Array(directed(expected).dropFirst(position + 1).prefix(1)))
            }
        }
        // Places that no record has, and outside of the range.
        let between = ScanRange.key(1, after: ("k1", "b"), isReversed: isReversed)
        #expect(try reader.ids(clients, between) == (isReversed ? ["a", "f"] : ["c", "é", "g", "b", "h"]))
        let outside = ScanRange.key(
            1, from: "k1", below: "k2", after: (isReversed ? "x" : "a", "z"), isReversed: isReversed)
        #expect(try reader.ids(clients, outside) == directed(["a", "c", "é", "g"]))
        #expect(try reader.ids(clients, .unkeyed(1, isReversed: isReversed)) == directed(["d", "i"]))
        #expect(try reader.ids(clients, .unkeyed(1, after: "d", isReversed: isReversed)) == (isReversed ? [] : ["i"]))
        #expect(try reader.count(clients, .unkeyed(0)) == UInt64(Self.keys.count))
        #expect(try reader.ids(clients, .key(0)).isEmpty)
    }

    @Test func hasTheRecordsThatWereAskedFor() throws {
        let clients = try store.collection("clients", indexes: ["name"])
        try store.write([.put("a", "1", "ra", keys: ["k"]), .put("b", "2", "rb", keys: ["k"])], to: clients)
        let reader = try store.reader()
        #expect(try reader.scan(clients, .key(0)) == [Record(0, "a", "1", "ra"), Record(1, "b", "2", "rb")])
        #expect(
            try reader.scan(clients, .key(0), withItems: false) == [Record(0, "a", "", "ra"), Record(1, "b", "", "rb")])
        #expect(try reader.scan(clients, .key(0), stoppingAfter: 1).count == 1)
        #expect(try failure { _ = try reader.scan(clients, .key(1)) }?.status == CRUDD_UNSUPPORTED)
        #expect(try failure { _ = try reader.count(clients, .unkeyed(1)) }?.status == CRUDD_UNSUPPORTED)
    }

    @Test func takesKeysOf512ZeroBytesAndOf512TimesTheGreatest() throws {
        let clients = try store.collection("clients", indexes: ["name"])
        var low = Change.put("low", "1")
        var high = Change.put("high", "1")
        low.keys = [[0]]
        high.keys = [[UInt8](repeating: 0xFF, count: 512)]
        try store.write([low, high], to: clients)
        let reader = try store.reader()
        #expect(try reader.ids(clients, .key(0)) == ["low", "high"])
        #expect(try reader.ids(clients, .key(0, isReversed: true)) == ["high", "low"])
        #expect(try reader.count(clients, .key(0)) == 2)
    }

    // MARK: Writing

    @Test func followWhatIsWritten() throws {
        let clients = try store.collection("clients", indexes: ["name", "city"])
        try store.write([.put("a", "1", keys: ["n1", "c1"]), .put("b", "1", keys: ["n2", "c1"])], to: clients)
        let reader = try store.reader()
        let outcomes = try store.write(
            [
                .put("a", "2", "r2", keys: ["n1", "c1"]),
                .put("b", "2", "r2", CRUDD_IF_REVISION, expected: "r", keys: ["n0", "c1"]),
                .put("c", "1", "r", CRUDD_IF_ABSENT, keys: ["n3", ""]),
                .put("a", "3", "r3", CRUDD_IF_PRESENT, keys: ["n1", "c2"]),
                .put("a", "4", "r4", CRUDD_IF_ABSENT, keys: ["x", "x"]),
                .put("b", "4", "r4", CRUDD_IF_REVISION, expected: "r", keys: ["x", "x"]),
            ], to: clients)
        #expect(outcomes == [.replaced, .replaced, .created, .replaced, .exists, .mismatch("r2")])
        reader.endSnapshot()
        #expect(try reader.ids(clients, .key(0)) == ["b", "a", "c"])
        #expect(try reader.ids(clients, .key(1)) == ["b", "a"])
        #expect(try reader.ids(clients, .unkeyed(1)) == ["c"])
        try store.write([.remove("a"), .put("c", "2", "r2", keys: ["n3", "c3"])], to: clients)
        reader.endSnapshot()
        #expect(try reader.ids(clients, .key(0)) == ["b", "c"])
        #expect(try reader.ids(clients, .key(1)) == ["b", "c"])
        #expect(try reader.ids(clients, .unkeyed(1)).isEmpty)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func keysAreSetForTheExpectedRevisionAlone() throws {
        let clients = try store.collection("clients", indexes: ["name"])
        try store.write([.put("a", "1", "r1"), .put("b", "1", "r1")], to: clients)
        let outcomes = try store.write(
            [.setKeys("a", ["k"], ifRevision: "r1"), .setKeys("b", ["k"], ifRevision: "r0"), .setKeys("c", ["k"])],
            to: clients)
        #expect(outcomes == [.keyed, .mismatch("r1"), .notFound])
        let reader = try store.reader()
        #expect(try reader.scan(clients, .key(0)) == [Record(0, "a", "1", "r1")], "nothing else has changed")
        #expect(try reader.ids(clients, .unkeyed(0)) == ["b"])
        #expect(try reader.metadata(clients).map(\.sequence) == [1, 2])
    }

    // MARK: Indexes come and go

    @Test func comeAndGo() throws {
        let clients = try store.collection("clients", indexes: ["name", "address.city"])
        #expect(try indexNames() == ["crudd_index_1", "crudd_index_2"])
        #expect(try store.collection("clients", indexes: ["age", "address.city"]) == clients)
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        // The file remembers.
        let other = try Store(path: path)
        _ = try other.collection("clients", indexes: ["address.city", "age"])
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        #expect(
            try Inspector(path).rows("SELECT number, path FROM crudd_indexes ORDER BY number") == [
                ["2", "address.city"], ["3", "age"],
            ])
        _ = try other.collection("clients")
        #expect(try indexNames() == [])
        #expect(try Inspector(path).rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'") == [])
        _ = try other.collection("clients", indexes: ["name"])
        #expect(try indexNames() == ["crudd_index_4"], "a number is used once")
        try other.dropCollection("clients")
        #expect(try indexNames() == [])
        #expect(try Inspector(path).rows("SELECT * FROM crudd_indexes") == [])
    }

    /// SQLite allows a table 2000 columns, and each index has one.
    @Test func changeMoreOftenThanATableHasColumns() throws {
        let clients = try store.collection("clients")
        try store.write([.put("1", "1")], to: clients)
        for number in 0..<2100 {
            let paths = number.isMultiple(of: 2) ? ["a"] : []
            #expect(try store.collection("clients", indexes: paths) == clients)
        }
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd%'"
        #expect(try Inspector(path).rows(columns).count <= 1)
    }

    /// What takes long to remove, or is used by others, stays behind, and the index is made all the same.
    @Test(arguments: ["many rows", "long item", "view"])
    func columnsThatStay(of kind: String) throws {
        let clients = try store.collection("clients", indexes: ["a"])
        let long = kind == "long item" ? String(repeating: "1", count: 5000) : "1"
        let rows = kind == "many rows" ? 1001 : 3
        try store.write((0..<rows).map { .put("\($0)", long, keys: ["k"]) }, to: clients)
        let inspector = try Inspector(path)
        if kind == "view" { try inspector.execute("CREATE VIEW mine AS SELECT crudd_key_1 FROM clients") }
        for paths in [[], ["b"], [], ["a"]] { _ = try store.collection("clients", indexes: paths) }
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd%' ORDER BY name"
        let left = kind == "view" ? ["crudd_key_1", "crudd_key_3"] : ["crudd_key_1", "crudd_key_2", "crudd_key_3"]
        #expect(try inspector.rows(columns).map { $0[0] } == left)
        #expect(try store.reader().ids(clients, .unkeyed(0)).count == rows)
    }

    /// A reader that has a snapshot of before, while columns come and go beside the one that it reads.
    @Test func aReaderOutlivesColumns() throws {
        let clients = try store.collection("clients", indexes: ["a", "b"])
        try store.write((0..<50).map { .put("\($0)", "1", keys: ["k", "l\($0 % 5)"]) }, to: clients)
        let reader = try store.reader()
        let ids = try reader.ids(clients, .key(1, from: "l2", below: "l3"))
        #expect(ids.count == 10)
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd_key_%' ORDER BY name"
        for (paths, left) in [
            (["b"], ["crudd_key_1", "crudd_key_2"]), (["b", "c"], ["crudd_key_2", "crudd_key_3"]),
            (["b"], ["crudd_key_2", "crudd_key_3"]), (["b", "d", "e"], ["crudd_key_2", "crudd_key_4", "crudd_key_5"]),
        ] {
            _ = try store.collection("clients", indexes: paths)
            #expect(try reader.ids(clients, .key(0, from: "l2", below: "l3")) == ids, "\(paths)")
            #expect(try reader.count(clients) == 50)
            #expect(try Inspector(path).rows(columns).map { $0[0] } == left, "\(paths)")
        }
    }

    @Test func tellAnyPathsApart() throws {
        let paths = ["a", "A", "é", "e\u{301}", "it's", #"x\.y"#, "x.y", #"quo"te"#, "new\nline", "", "a."]
        let clients = try store.collection("clients", indexes: paths)
        #expect(try indexNames().count == paths.count)
        try store.write([.put("1", "1", keys: paths.indices.map { "\($0)" })], to: clients)
        // In another order, by another backend.
        let other = try Store(path: path)
        let same = try other.collection("clients", indexes: paths.reversed())
        let reader = try other.reader()
        for index in paths.indices {
            let position = paths.count - 1 - index
            #expect(try reader.ids(same, .key(position, from: "\(index)", below: "\(index)\u{0}")) == ["1"])
        }
    }

    @Test func positionsFollowTheLatestSpecification() throws {
        let clients = try store.collection("clients", indexes: ["name", "city"])
        try store.write([.put("a", "1", keys: ["n", "c"])], to: clients)
        let reader = try store.reader()
        #expect(try reader.count(clients, .key(0, from: "n")) == 1)
        _ = try store.collection("clients", indexes: ["city", "name"])
        #expect(try reader.count(clients, .key(0, from: "c", below: "d")) == 1)
        #expect(try reader.count(clients, .key(1, from: "n")) == 1)
        try store.write([.put("b", "1", keys: ["c2", "n2"])], to: clients)
        reader.endSnapshot()
        #expect(try reader.ids(clients, .key(1)) == ["a", "b"])
        _ = try store.collection("clients")
        #expect(try failure { _ = try reader.scan(clients, .key(0)) }?.status == CRUDD_UNSUPPORTED)
        #expect(try store.write([.put("c", "1", keys: ["x"])], to: clients) == [.created])
    }

    @Test func ofOthersAreLeftAlone() throws {
        let inspector = try Inspector(path)
        _ = try store.collection("clients", indexes: ["a"])
        try inspector.execute("CREATE INDEX mine ON clients (revision)")
        _ = try store.collection("clients")
        #expect(try inspector.rows("SELECT name FROM sqlite_schema WHERE name = 'mine'") == [["mine"]])
    }

    @Test func aReaderSeesIndexesThatCameLater() throws {
        let clients = try store.collection("clients")
        try store.write([.put("1", "1"), .put("2", "1")], to: clients)
        let reader = try store.reader()
        #expect(try reader.count(clients) == 2)
        _ = try store.collection("clients", indexes: ["a"])
        #expect(try reader.ids(clients, .unkeyed(0)) == ["1", "2"])
    }

    @Test func anIndexThatSomebodyHasDroppedIsMadeAgain() throws {
        var clients = try store.collection("clients", indexes: ["a", "b"])
        try store.write([.put("1", "1", keys: ["k", "k"])], to: clients)
        try Inspector(path).execute("DROP INDEX crudd_index_1; DROP TRIGGER crudd_update_1; DROP INDEX crudd_expiry_1")
        let other = try Store(path: path)
        clients = try other.collection("clients", indexes: ["a", "b"])
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        let reader = try other.reader()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["1"])
        #expect(try reader.ids(clients, .key(1)) == ["1"])
        #expect(try reader.count(clients) == 1)
        #expect(try Inspector(path).rows("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") == [["2"]])
    }
}
