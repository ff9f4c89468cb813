import CRUDPluginABI
import CRUDTestSupport
import Testing

@Suite struct ReadingTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store
    private let clients: OpaquePointer
    private let reader: Reader

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path)
        clients = try store.collection("clients")
        reader = try store.reader()
    }

    @Test func emitsARecordForEachPositionThatAsksForIt() throws {
        try store.write([.put("a", "1", "ra"), .put("b", "2", "rb")], to: clients)
        #expect(
            try reader.read(["b", "x", "a", "b", ""], in: clients) == [
                Record(0, "b", "2", "rb"), Record(2, "a", "1", "ra"), Record(3, "b", "2", "rb"),
            ])
        #expect(try reader.read([], in: clients) == [])
        #expect(
            try reader.read(["a", "b"], in: clients, withItems: false) == [
                Record(0, "a", "", "ra"), Record(1, "b", "", "rb"),
            ])
        #expect(try reader.read(["a", "b", "a"], in: clients, stoppingAfter: 2).map(\.position) == [0, 1])
    }

    @Test func scansInTheOrderOfBytes() throws {
        // U+FB00 is above the surrogates: in UTF-16 it would come after the emoji.
        let ids = ["a", "a ", "a\u{10FFFF}", "aa", "ab", "b", "Z", "z", "é", "\u{FB00}", "😀", "\u{10FFFF}"]
        try store.write(ids.map { .put($0, "1") }, to: clients)
        let sorted = ids.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        #expect(try reader.scan(clients).map(\.idText) == sorted)
        #expect(try reader.scan(clients).map(\.position) == Array(sorted.indices))
        for id in sorted + ["", "A", "aaa", "zz"] {
            let rest = sorted.filter { Array(id.utf8).lexicographicallyPrecedes(Array($0.utf8)) }
            #expect(try reader.ids(clients, .after(id)) == rest, "\(id)")
            let before = sorted.filter { Array($0.utf8).lexicographicallyPrecedes(Array(id.utf8)) }
            let expected = Array((id.isEmpty ? sorted : before).reversed())
            #expect(try reader.ids(clients, .after(id, isReversed: true)) == expected, "\(id)")
        }
        for prefix in ["a", "aa", "é", "😀", "\u{10FFFF}", "x", "a\u{10FFFF}"] {
            let those = sorted.filter { Array($0.utf8).starts(with: Array(prefix.utf8)) }
            #expect(try reader.ids(clients, .prefix(prefix)) == those, "\(prefix)")
            #expect(try reader.count(clients, .prefix(prefix)) == UInt64(those.count), "\(prefix)")
        }
        #expect(try reader.ids(clients, .prefix("a", after: "a ")) == ["aa", "ab", "a\u{10FFFF}"])
        #expect(try reader.ids(clients, .prefix("a", after: "b")).isEmpty)
        #expect(try reader.ids(clients, .prefix("a", after: "Z"), limit: 2) == ["a", "a "])
        #expect(
            try reader.ids(clients, ScanRange(lower: "aa", upper: "b", afterID: "c", isReversed: true))
                == ["a\u{10FFFF}", "ab", "aa"])
        #expect(try reader.scan(clients, stoppingAfter: 3).count == 3)
        #expect(try reader.scan(clients, limit: 1, withItems: false) == [Record(0, "Z", "", "r")])
        #expect(try reader.count(clients) == UInt64(ids.count))
        #expect(try reader.count(clients, .prefix("a"), limit: 3) == 3)
        #expect(try reader.count(clients, limit: 3) >= 3)
    }

    @Test func pagesThroughEverything() throws {
        try store.write((0..<2500).map { .put("k\($0)", "\($0)") }, to: clients)
        var last = ""
        var seen: [String] = []
        while true {
            let page = try reader.scan(clients, .after(last), limit: 1000)
            guard let end = page.last else { break }
            seen += page.map(\.idText)
            last = end.idText
        }
        #expect(seen == (0..<2500).map { "k\($0)" }.sorted())
    }

    @Test func stopsWhenNobodyWaits() throws {
        let item = String(repeating: "x", count: 50)
        for batch in 0..<10 {
            try store.write((0..<1000).map { .put("\(batch).\($0)", item) }, to: clients)
        }
        let failure = try failure { _ = try reader.scan(clients, call: Call(maximumQuestions: 1)) }
        #expect(failure?.status == CRUDD_INTERRUPTED)
        #expect(try reader.scan(clients).count == 10_000)
    }

    // MARK: Rows of other hands

    @Test func takesARowThatSomebodyHasInserted() throws {
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('hand', '{}')")
        let record = try #require(try reader.read(["hand"], in: clients).first)
        #expect(record.itemText == "{}")
        #expect(record.revision.count == 32, "with a revision of its own")
        let revision = String(decoding: record.revision, as: UTF8.self)
        #expect(
            try store.write([.put("hand", "1", "r", CRUDD_IF_REVISION, expected: revision)], to: clients) == [.replaced]
        )
    }

    @Test(
        arguments: [
            ("NULL", "'1'"), ("''", "'1'"), ("'has space'", "'1'"), ("'é'", "'1'"), ("printf('%065d', 0)", "'1'"),
            ("x'00'", "'1'"), ("'r'", "NULL"), ("'r'", "''"),
        ], [CRUDD_IF_ANY, CRUDD_IF_REVISION])
    func emitsRowsThatViolateTheRulesWithoutAnItem(row: (revision: String, item: String), precondition: Int) throws {
        try Inspector(path).execute(
            """
            DROP TABLE clients;
            CREATE TABLE clients (id PRIMARY KEY, revision, item, expires_at, sequence);
            CREATE INDEX crudd_expiry_1 ON clients (expires_at, id) WHERE expires_at IS NOT NULL;
            INSERT INTO clients (id, revision, item)
            VALUES ('a', \(row.revision), \(row.item)), ('good', 'r', '1')
            """)
        let revision = row.revision == "'r'" ? "r" : "invalid"
        let corrupt = Record(0, "a", "", revision)
        #expect(try reader.read(["a"], in: clients) == [corrupt])
        #expect(try reader.scan(clients) == [corrupt, Record(1, "good", "1", "r")])
        #expect(try reader.scan(clients, withItems: false).count == 2)
        #expect(try reader.count(clients) == 2)
        #expect(
            try store.write([.put("a", "2", "x", CRUDD_IF_REVISION, expected: "y")], to: clients)
                == [.mismatch(revision)])
        let repair = Change.put("a", "2", "r2", precondition, expected: revision)
        #expect(try store.write([repair], to: clients) == [.replaced], "overwriting it repairs it")
        reader.endSnapshot()
        #expect(try reader.read(["a"], in: clients) == [Record(0, "a", "2", "r2")])
    }

    @Test(arguments: ["NULL", "x'FF'", "CAST(x'FF' AS TEXT)", "'a' || char(10)", "printf('%0513d', 0)", "''", "5"])
    func neverEmitsAnInvalidID(_ id: String) throws {
        try Inspector(path).execute(
            """
            DROP TABLE clients;
            CREATE TABLE clients (id PRIMARY KEY, revision, item, expires_at, sequence);
            INSERT INTO clients (id, revision, item) VALUES (\(id), 'r', '1'), ('good', 'r', '1')
            """)
        for _ in 0..<2 { #expect(try reader.scan(clients) == [Record(0, "good", "1", "r")]) }
        // Some are out of the range of ids, and are not visited at all.
        #expect(store.logLines.count <= 1)
    }

    @Test func reportsATableThatHasLostAColumn() throws {
        try store.write([.put("a", "1")], to: clients)
        try Inspector(path).execute("ALTER TABLE clients DROP COLUMN item")
        #expect(try failure { _ = try reader.read(["a"], in: clients) } != nil)
        #expect(try failure { _ = try store.write([.put("a", "1")], to: clients) } != nil)
    }
}
