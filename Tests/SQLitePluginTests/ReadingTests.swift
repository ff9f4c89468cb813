import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Testing

@Suite struct ReadingTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection
    private let reader: PluginReader

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path)
        clients = try backend.open("clients")
        reader = try backend.reader()
    }

    @Test func emitsARecordForEachPositionThatAsksForIt() throws {
        let a = PluginRecord("a", "1", revision: "ra")
        let b = PluginRecord("b", "2", revision: "rb")
        _ = try backend.write([.put(a, in: clients), .put(b, in: clients)])
        #expect(try reader.read(["b", "x", "a", "b", ""], in: clients) == [b, nil, a, b, nil])
        #expect(try reader.read([], in: clients) == [])
        #expect(
            try reader.read(["a", "b"], in: clients, withItems: false)
                == [PluginRecord("a", "", revision: "ra"), PluginRecord("b", "", revision: "rb")])
        #expect(try reader.read(["a", "b", "a"], in: clients, stopAfter: 2) == [a, b, nil])
    }

    @Test func scansInTheOrderOfBytes() throws {
        // U+FB00 is above the surrogates: in UTF-16 it would come after the emoji.
        let ids = ["a", "a ", "a\u{10FFFF}", "aa", "ab", "b", "Z", "z", "é", "\u{FB00}", "😀", "\u{10FFFF}"]
        _ = try backend.write(ids.map { .put($0, "1", in: clients) })
        let sorted = ids.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        #expect(try reader.scan(clients).map(\.id) == sorted)
        for id in sorted + ["", "A", "aaa", "zz"] {
            let rest = sorted.filter { Array(id.utf8).lexicographicallyPrecedes(Array($0.utf8)) }
            #expect(try reader.ids(clients, after: id) == rest, "\(id)")
            let before = sorted.filter { Array($0.utf8).lexicographicallyPrecedes(Array(id.utf8)) }
            let expected = Array((id.isEmpty ? sorted : before).reversed())
            #expect(try reader.ids(clients, isReversed: true, after: id) == expected, "\(id)")
        }
        for prefix in ["a", "aa", "é", "😀", "\u{10FFFF}", "x", "a\u{10FFFF}"] {
            let those = sorted.filter { Array($0.utf8).starts(with: Array(prefix.utf8)) }
            #expect(try reader.ids(clients, .prefix(prefix)) == those, "\(prefix)")
            #expect(try reader.count(clients, .prefix(prefix)) == those.count, "\(prefix)")
        }
        #expect(try reader.ids(clients, .prefix("a"), after: "a ") == ["aa", "ab", "a\u{10FFFF}"])
        #expect(try reader.ids(clients, .prefix("a"), after: "b").isEmpty)
        #expect(try reader.ids(clients, .prefix("a"), after: "Z", limit: 2) == ["a", "a "])
        let range = PluginRange(lower: Array("aa".utf8), upper: Array("b".utf8))
        #expect(try reader.ids(clients, range, isReversed: true, after: "c") == ["a\u{10FFFF}", "ab", "aa"])
        #expect(try reader.scan(clients, stopAfter: 3).count == 3)
        #expect(try reader.scan(clients, limit: 1, withItems: false) == [PluginRecord("Z", "")])
        #expect(try reader.count(clients) == ids.count)
        #expect(try reader.count(clients, .prefix("a"), limit: 3) == 3)
        #expect(try reader.count(clients, limit: 3) >= 3)
    }

    @Test func pagesThroughEverything() throws {
        _ = try backend.write((0..<2500).map { .put("k\($0)", "\($0)", in: clients) })
        var last = ""
        var seen: [String] = []
        while true {
            let page = try reader.scan(clients, after: last, limit: 1000)
            guard let end = page.last else { break }
            seen += page.map(\.id)
            last = end.id
        }
        #expect(seen == (0..<2500).map { "k\($0)" }.sorted())
    }

    @Test func stopsWhenNobodyWaits() throws {
        let item = String(repeating: "x", count: 50)
        for batch in 0..<10 {
            _ = try backend.write((0..<1000).map { .put("\(batch).\($0)", item, in: clients) })
        }
        var questions = 0
        backend.call.isInterrupted = {
            questions += 1
            return questions > 1
        }
        #expect(try failure { try reader.scan(clients) }?.status == CRUDD_INTERRUPTED)
        backend.call.isInterrupted = nil
        #expect(try reader.scan(clients).count == 10_000)
    }

    // MARK: Rows of other hands

    @Test func takesARowThatSomebodyHasInserted() throws {
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('hand', '{}')")
        let record = try #require(try reader.read("hand", in: clients))
        #expect(record.item == "{}")
        #expect(record.revision.utf8.count == 32, "with a revision of its own")
        #expect(try backend.write([.put("hand", "1", if: .revision(record.revision), in: clients)]) == [.replaced])
    }

    @Test(
        arguments: [
            ("NULL", "'1'"), ("''", "'1'"), ("'has space'", "'1'"), ("'é'", "'1'"), ("printf('%065d', 0)", "'1'"),
            ("x'00'", "'1'"), ("'r'", "NULL"), ("'r'", "''"),
        ], [false, true])
    func emitsRowsThatViolateTheRulesWithoutAnItem(
        row: (revision: String, item: String), isConditional: Bool
    ) throws {
        try Inspector(path).execute(
            """
            DROP TABLE clients;
            CREATE TABLE clients (id PRIMARY KEY, revision, item, expires_at, sequence);
            CREATE INDEX crudd_expiry_1 ON clients (expires_at, id) WHERE expires_at IS NOT NULL;
            INSERT INTO clients (id, revision, item)
            VALUES ('a', \(row.revision), \(row.item)), ('good', 'r', '1')
            """)
        let revision = row.revision == "'r'" ? "r" : "invalid"
        let corrupt = PluginRecord("a", "", revision: revision)
        #expect(try reader.read("a", in: clients) == corrupt)
        #expect(try reader.scan(clients) == [corrupt, PluginRecord("good", "1", revision: "r")])
        #expect(try reader.scan(clients, withItems: false).count == 2)
        #expect(try reader.count(clients) == 2)
        #expect(
            try backend.write([.put("a", "2", revision: "x", if: .revision("y"), in: clients)])
                == [.mismatch(current: revision)])
        let repair = PluginMutation.put(
            "a", "2", revision: "r2", if: isConditional ? .revision(revision) : .none, in: clients)
        #expect(try backend.write([repair]) == [.replaced], "overwriting it repairs it")
        reader.endSnapshot()
        #expect(try reader.read("a", in: clients) == PluginRecord("a", "2", revision: "r2"))
    }

    @Test(arguments: ["NULL", "x'FF'", "CAST(x'FF' AS TEXT)", "'a' || char(10)", "printf('%0513d', 0)", "''", "5"])
    func neverEmitsAnInvalidID(_ id: String) throws {
        try Inspector(path).execute(
            """
            DROP TABLE clients;
            CREATE TABLE clients (id PRIMARY KEY, revision, item, expires_at, sequence);
            INSERT INTO clients (id, revision, item) VALUES (\(id), 'r', '1'), ('good', 'r', '1')
            """)
        for _ in 0..<2 { #expect(try reader.scan(clients) == [PluginRecord("good", "1", revision: "r")]) }
        // Some are out of the range of ids, and are not visited at all.
        #expect(backend.logged.count <= 1)
    }

    @Test func reportsATableThatHasLostAColumn() throws {
        _ = try backend.write([.put("a", "1", in: clients)])
        try Inspector(path).execute("ALTER TABLE clients DROP COLUMN item")
        #expect(try failure { try reader.read(["a"], in: clients) } != nil)
        #expect(try failure { try backend.write([.put("a", "1", in: clients)]) } != nil)
    }
}
