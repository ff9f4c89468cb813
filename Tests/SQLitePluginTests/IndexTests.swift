import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// Indexes by keys that the host makes: their order, how they come and go, and how they are filled.
@Suite struct IndexTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path, synchronous: "off")
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
        let clients = try backend.open("clients", format: format, indexes: ["unused", "name"])
        _ = try backend.write(Self.keys.map { .put($0.id, "1", keys: ["", $0.key], in: clients) })
        let reader = try backend.reader()
        func directed(_ ids: [String]) -> [String] { isReversed ? ids.reversed() : ids }
        func ids(
            _ range: PluginRange, after: (key: String, id: String) = ("", ""), limit: Int = 0
        ) throws -> [String] {
            try reader.ids(
                clients, range, isReversed: isReversed, afterKey: after.key, after: after.id, limit: limit)
        }
        for (lower, upper) in [
            ("", ""), ("k1", ""), ("", "k1"), ("k1", "k2"), ("k1", "k1"), ("m", ""), ("k0", "k1\u{0}"),
        ] {
            let expected = sortedIDs { key in
                !Array(key.utf8).lexicographicallyPrecedes(Array(lower.utf8))
                    && (upper.isEmpty || Array(key.utf8).lexicographicallyPrecedes(Array(upper.utf8)))
            }
            let range = PluginRange.keys(1, from: lower, to: upper)
            #expect(try ids(range) == directed(expected), "\(lower)..<\(upper)")
            #expect(try reader.count(clients, range) == expected.count)
            #expect(try reader.count(clients, range, limit: 2) >= min(2, expected.count))
            // From each place on.
            for (position, id) in directed(expected).enumerated() {
                let key = Self.keys.first { $0.id == id }?.key ?? ""
                let rest = Array(directed(expected).dropFirst(position + 1))
                #expect(try ids(range, after: (key, id)) == rest)
                #expect(try ids(range, after: (key, id), limit: 1) == Array(rest.prefix(1)))
            }
        }
        // Places that no record has, and outside of the range.
        #expect(try ids(.keys(1), after: ("k1", "b")) == (isReversed ? ["a", "f"] : ["c", "é", "g", "b", "h"]))
        let outside = try ids(.keys(1, from: "k1", to: "k2"), after: (isReversed ? "x" : "a", "z"))
        #expect(outside == directed(["a", "c", "é", "g"]))
        #expect(try ids(.unkeyed(1)) == directed(["d", "i"]))
        #expect(try ids(.unkeyed(1), after: ("", "d")) == (isReversed ? [] : ["i"]))
        #expect(try reader.count(clients, .unkeyed(0)) == Self.keys.count)
        #expect(try reader.ids(clients, .keys(0)).isEmpty)
    }

    @Test func hasTheRecordsThatWereAskedFor() throws {
        let clients = try backend.open("clients", indexes: ["name"])
        let records = [PluginRecord("a", "1", revision: "ra"), PluginRecord("b", "2", revision: "rb")]
        _ = try backend.write(records.map { .put($0, keys: [[1]], in: clients) })
        let reader = try backend.reader()
        #expect(try reader.scan(clients, .keys(0)) == records)
        #expect(
            try reader.scan(clients, .keys(0), withItems: false)
                == [PluginRecord("a", "", revision: "ra"), PluginRecord("b", "", revision: "rb")])
        #expect(try reader.scan(clients, .keys(0), stopAfter: 1).count == 1)
        #expect(try failure { try reader.scan(clients, .keys(1)) }?.status == CRUDD_UNSUPPORTED)
        #expect(try failure { try reader.count(clients, .unkeyed(1)) }?.status == CRUDD_UNSUPPORTED)
    }

    @Test func takesKeysOf512ZeroBytesAndOf512TimesTheGreatest() throws {
        let clients = try backend.open("clients", indexes: ["name"])
        _ = try backend.write([
            .put(PluginRecord("low", "1"), keys: [[0]], in: clients),
            .put(PluginRecord("high", "1"), keys: [[UInt8](repeating: 0xFF, count: 512)], in: clients),
        ])
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .keys(0)) == ["low", "high"])
        #expect(try reader.ids(clients, .keys(0), isReversed: true) == ["high", "low"])
        #expect(try reader.count(clients, .keys(0)) == 2)
    }

    // MARK: Writing

    @Test func followWhatIsWritten() throws {
        let clients = try backend.open("clients", indexes: ["name", "city"])
        _ = try backend.write([
            .put("a", "1", keys: ["n1", "c1"], in: clients), .put("b", "1", keys: ["n2", "c1"], in: clients),
        ])
        let reader = try backend.reader()
        let outcomes = try backend.write([
            .put("a", "2", revision: "r2", keys: ["n1", "c1"], in: clients),
            .put("b", "2", revision: "r2", keys: ["n0", "c1"], if: .revision("1"), in: clients),
            .put("c", "1", keys: ["n3", ""], if: .absent, in: clients),
            .put("a", "3", revision: "r3", keys: ["n1", "c2"], if: .present, in: clients),
            .put("a", "4", revision: "r4", keys: ["x", "x"], if: .absent, in: clients),
            .put("b", "4", revision: "r4", keys: ["x", "x"], if: .revision("1"), in: clients),
        ])
        #expect(outcomes == [.replaced, .replaced, .created, .replaced, .exists, .mismatch(current: "r2")])
        reader.endSnapshot()
        #expect(try reader.ids(clients, .keys(0)) == ["b", "a", "c"])
        #expect(try reader.ids(clients, .keys(1)) == ["b", "a"])
        #expect(try reader.ids(clients, .unkeyed(1)) == ["c"])
        _ = try backend.write([
            .remove("a", in: clients), .put("c", "2", revision: "r2", keys: ["n3", "c3"], in: clients),
        ])
        reader.endSnapshot()
        #expect(try reader.ids(clients, .keys(0)) == ["b", "c"])
        #expect(try reader.ids(clients, .keys(1)) == ["b", "c"])
        #expect(try reader.ids(clients, .unkeyed(1)).isEmpty)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func keysAreSetForTheExpectedRevisionAlone() throws {
        let clients = try backend.open("clients", indexes: ["name"])
        _ = try backend.write(["a", "b"].map { .put($0, "1", revision: "r1", in: clients) })
        let outcomes = try backend.write([
            .setKeys("a", [[1]], ifRevision: "r1", in: clients), .setKeys("b", [[1]], ifRevision: "r0", in: clients),
            .setKeys("c", [[1]], ifRevision: "1", in: clients),
        ])
        #expect(outcomes == [.passed, .mismatch(current: "r1"), .notFound])
        let reader = try backend.reader()
        #expect(
            try reader.scan(clients, .keys(0)) == [PluginRecord("a", "1", revision: "r1")], "nothing else has changed")
        #expect(try reader.ids(clients, .unkeyed(0)) == ["b"])
        #expect(try reader.scan(clients).map(\.sequence) == [1, 2])
    }

    // MARK: Indexes come and go

    @Test func comeAndGo() throws {
        let clients = try backend.open("clients", indexes: ["name", "address.city"])
        #expect(try indexNames() == ["crudd_index_1", "crudd_index_2"])
        #expect(try backend.open("clients", indexes: ["age", "address.city"]) == clients)
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        // The file remembers.
        let other = try PluginBackend(path: path)
        _ = try other.open("clients", indexes: ["address.city", "age"])
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        #expect(
            try Inspector(path).rows("SELECT number, path FROM crudd_indexes ORDER BY number") == [
                ["2", "address.city"], ["3", "age"],
            ])
        _ = try other.open("clients")
        #expect(try indexNames() == [])
        #expect(try Inspector(path).rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'") == [])
        _ = try other.open("clients", indexes: ["name"])
        #expect(try indexNames() == ["crudd_index_4"], "a number is used once")
        try other.drop("clients")
        #expect(try indexNames() == [])
        #expect(try Inspector(path).rows("SELECT * FROM crudd_indexes") == [])
    }

    /// SQLite allows a table 2000 columns, and each index has one.
    @Test func changeMoreOftenThanATableHasColumns() throws {
        let clients = try backend.open("clients")
        _ = try backend.write([.put("1", "1", in: clients)])
        for number in 0..<2100 {
            let paths = number.isMultiple(of: 2) ? ["a"] : []
            #expect(try backend.open("clients", indexes: paths) == clients)
        }
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd%'"
        #expect(try Inspector(path).rows(columns).count <= 1)
    }

    /// What takes long to remove, or is used by others, stays behind, and the index is made all the same.
    @Test(arguments: ["many rows", "long item", "view"])
    func columnsThatStay(of kind: String) throws {
        let clients = try backend.open("clients", indexes: ["a"])
        let long = kind == "long item" ? String(repeating: "1", count: 5000) : "1"
        let rows = kind == "many rows" ? 1001 : 3
        _ = try backend.write((0..<rows).map { .put("\($0)", long, keys: ["k"], in: clients) })
        let inspector = try Inspector(path)
        if kind == "view" { try inspector.execute("CREATE VIEW mine AS SELECT crudd_key_1 FROM clients") }
        for paths in [[], ["b"], [], ["a"]] { _ = try backend.open("clients", indexes: paths) }
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd%' ORDER BY name"
        let left = kind == "view" ? ["crudd_key_1", "crudd_key_3"] : ["crudd_key_1", "crudd_key_2", "crudd_key_3"]
        #expect(try inspector.rows(columns).map { $0[0] } == left)
        #expect(try backend.reader().ids(clients, .unkeyed(0)).count == rows)
    }

    /// A reader that has a snapshot of before, while columns come and go beside the one that it reads.
    @Test func aReaderOutlivesColumns() throws {
        let clients = try backend.open("clients", indexes: ["a", "b"])
        _ = try backend.write((0..<50).map { .put("\($0)", "1", keys: ["k", "l\($0 % 5)"], in: clients) })
        let reader = try backend.reader()
        let ids = try reader.ids(clients, .keys(1, from: "l2", to: "l3"))
        #expect(ids.count == 10)
        let columns = "SELECT name FROM pragma_table_info('clients') WHERE name LIKE 'crudd_key_%' ORDER BY name"
        for (paths, left) in [
            (["b"], ["crudd_key_1", "crudd_key_2"]), (["b", "c"], ["crudd_key_2", "crudd_key_3"]),
            (["b"], ["crudd_key_2", "crudd_key_3"]), (["b", "d", "e"], ["crudd_key_2", "crudd_key_4", "crudd_key_5"]),
        ] {
            _ = try backend.open("clients", indexes: paths)
            #expect(try reader.ids(clients, .keys(0, from: "l2", to: "l3")) == ids, "\(paths)")
            #expect(try reader.count(clients) == 50)
            #expect(try Inspector(path).rows(columns).map { $0[0] } == left, "\(paths)")
        }
    }

    @Test func tellAnyPathsApart() throws {
        let paths = ["a", "A", "é", "e\u{301}", "it's", #"x\.y"#, "x.y", #"quo"te"#, "new\nline", "", "a."]
        let clients = try backend.open("clients", indexes: paths)
        #expect(try indexNames().count == paths.count)
        _ = try backend.write([.put("1", "1", keys: paths.indices.map { "\($0)" }, in: clients)])
        // In another order, by another backend.
        let other = try PluginBackend(path: path)
        let same = try other.open("clients", indexes: paths.reversed())
        let reader = try other.reader()
        for index in paths.indices {
            let position = paths.count - 1 - index
            #expect(try reader.ids(same, .keys(position, from: "\(index)", to: "\(index)\u{0}")) == ["1"])
        }
    }

    @Test func positionsFollowTheLatestSpecification() throws {
        let clients = try backend.open("clients", indexes: ["name", "city"])
        _ = try backend.write([.put("a", "1", keys: ["n", "c"], in: clients)])
        let reader = try backend.reader()
        #expect(try reader.count(clients, .keys(0, from: "n")) == 1)
        _ = try backend.open("clients", indexes: ["city", "name"])
        #expect(try reader.count(clients, .keys(0, from: "c", to: "d")) == 1)
        #expect(try reader.count(clients, .keys(1, from: "n")) == 1)
        _ = try backend.write([.put("b", "1", keys: ["c2", "n2"], in: clients)])
        reader.endSnapshot()
        #expect(try reader.ids(clients, .keys(1)) == ["a", "b"])
        _ = try backend.open("clients")
        #expect(try failure { try reader.scan(clients, .keys(0)) }?.status == CRUDD_UNSUPPORTED)
        #expect(try backend.write([.put("c", "1", keys: ["x"], in: clients)]) == [.created])
    }

    @Test func ofOthersAreLeftAlone() throws {
        let inspector = try Inspector(path)
        _ = try backend.open("clients", indexes: ["a"])
        try inspector.execute("CREATE INDEX mine ON clients (revision)")
        _ = try backend.open("clients")
        #expect(try inspector.rows("SELECT name FROM sqlite_schema WHERE name = 'mine'") == [["mine"]])
    }

    @Test func aReaderSeesIndexesThatCameLater() throws {
        let clients = try backend.open("clients")
        _ = try backend.write([.put("1", "1", in: clients), .put("2", "1", in: clients)])
        let reader = try backend.reader()
        #expect(try reader.count(clients) == 2)
        _ = try backend.open("clients", indexes: ["a"])
        #expect(try reader.ids(clients, .unkeyed(0)) == ["1", "2"])
    }

    @Test func anIndexThatSomebodyHasDroppedIsMadeAgain() throws {
        var clients = try backend.open("clients", indexes: ["a", "b"])
        _ = try backend.write([.put("1", "1", keys: ["k", "k"], in: clients)])
        try Inspector(path).execute("DROP INDEX crudd_index_1; DROP TRIGGER crudd_update_1; DROP INDEX crudd_expiry_1")
        let other = try PluginBackend(path: path)
        clients = try other.open("clients", indexes: ["a", "b"])
        #expect(try indexNames() == ["crudd_index_2", "crudd_index_3"])
        let reader = try other.reader()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["1"])
        #expect(try reader.ids(clients, .keys(1)) == ["1"])
        #expect(try reader.count(clients) == 1)
        #expect(try Inspector(path).rows("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") == [["2"]])
    }
}
