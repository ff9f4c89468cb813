import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import Testing

/// Records that have no key yet: those that were there before the index, and those that other programs write.
@Suite struct IndexFillingTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
    }

    /// Makes keys as the host does: scans those without in batches, from where the last one ended.
    private static func fill(
        _ collection: PluginCollection, after start: String = "", batches: Int = .max
    ) throws {
        let reader = try collection.backend.reader()
        var last = start
        for _ in 0..<batches {
            let page = try reader.scan(collection, .unkeyed(0), after: last, limit: 100)
            guard let end = page.last else { return }
            _ = try collection.backend.write(
                page.map { .setKeys($0.id, [Array("k\($0.item)".utf8)], ifRevision: "1", in: collection) })
            last = end.id
            reader.endSnapshot()
        }
    }

    private func filledBelow() throws -> String {
        try Inspector(path).rows("SELECT typeof(filled_below) || ' ' || filled_below FROM crudd_indexes")[0][0]
    }

    @Test func recordsThatWereThereAreUnkeyedUntilTheyAreFilled() throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        var clients = try backend.open("clients")
        _ = try backend.write((0..<1000).map { .put("id\(1000 + $0)", "\($0 % 7)", in: clients) })
        clients = try backend.open("clients", indexes: ["n"])
        let reader = try backend.reader()
        #expect(try reader.count(clients, .unkeyed(0)) == 1000)
        #expect(try reader.ids(clients, .keys(0)).isEmpty)
        #expect(try reader.ids(clients, .unkeyed(0), isReversed: true, limit: 2) == ["id1999", "id1998"])
        #expect(try filledBelow() == "text id1000")
        try Self.fill(clients, batches: 3)
        #expect(try filledBelow() == "text id1300")
        // What is written meanwhile has its key at once, or none for good.
        _ = try backend.write([
            .put("id1500", "1", keys: ["k1"], in: clients), .put("id1001", "1", in: clients),
            .put("new", "1", keys: ["k1"], in: clients),
        ])
        reader.endSnapshot()
        #expect(try reader.count(clients, .unkeyed(0)) == 700)
        #expect(try reader.ids(clients, .unkeyed(0), limit: 2) == ["id1001", "id1300"])
        #expect(try reader.count(clients, .keys(0)) == 301)
        try Self.fill(clients, after: "id1299")
        #expect(try filledBelow() == "blob ")
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["id1001"])
        #expect(try reader.count(clients, .keys(0)) == 1000)
    }

    @Test func fillingContinuesAfterTheProcessWasKilled() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let backend = try PluginBackend(path: path)
            var clients = try backend.open("clients")
            _ = try backend.write((0..<1000).map { .put("id\(1000 + $0)", "\($0 % 7)", in: clients) })
            clients = try backend.open("clients", indexes: ["n"])
            try Self.fill(clients, batches: 4)
            kill(getpid(), SIGKILL)
        }
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients", indexes: ["n"])
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .unkeyed(0), limit: 1) == ["id1400"])
        #expect(try reader.count(clients, .keys(0)) == 400)
        try Self.fill(clients)
        reader.endSnapshot()
        #expect(try reader.count(clients, .unkeyed(0)) == 0)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func isCompleteOnceTheRestWasRemoved() throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        var clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: clients), .put("b", "1", in: clients)])
        clients = try backend.open("clients", indexes: ["n"])
        backend.idle()
        #expect(try filledBelow() == "text a")
        _ = try backend.write([.remove("a", in: clients), .put("b", "1", keys: ["k"], in: clients)])
        backend.idle()
        #expect(try filledBelow() == "blob ")
    }

    @Test func recordsThatHaveExpiredNeedNoKey() throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        var clients = try backend.open("clients")
        backend.call.now = 100
        _ = try backend.write([.put("a", "1", expiresAt: 200, in: clients), .put("b", "1", in: clients)])
        clients = try backend.open("clients", indexes: ["n"])
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["a", "b"])
        backend.call.now = 200
        try Self.fill(clients)
        #expect(try filledBelow() == "blob ")
        try Inspector(path).execute("UPDATE clients SET expires_at = NULL WHERE id = 'a'")
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["a"])
    }

    @Test func anEmptyTableNeedsNoFilling() throws {
        let backend = try PluginBackend(path: path)
        _ = try backend.open("clients", indexes: ["n"])
        #expect(try filledBelow() == "blob ")
    }

    @Test func aSnapshotShowsEachRecordOnce() throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        var clients = try backend.open("clients")
        _ = try backend.write((0..<100).map { .put("id\(100 + $0)", "1", in: clients) })
        clients = try backend.open("clients", indexes: ["n"])
        let reader = try backend.reader()
        #expect(try reader.count(clients, .unkeyed(0)) == 100)
        try Self.fill(clients)
        #expect(try reader.ids(clients, .unkeyed(0)).count == 100, "in the snapshot that it holds")
        #expect(try reader.ids(clients, .keys(0)).isEmpty)
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)).isEmpty)
        #expect(try reader.ids(clients, .keys(0)).count == 100)
    }

    /// What other programs do to records with the key `old`, and who has no key then.
    @Test(arguments: [
        ("INSERT INTO clients (id, item) VALUES ('x', '2')", ["x"]),
        ("INSERT INTO clients (id, item, sequence) VALUES ('x', '2', 99)", ["x"]),
        ("UPDATE clients SET item = '2' WHERE id = 'a'", ["a"]),
        ("UPDATE clients SET item = '2', revision = 'x', sequence = NULL WHERE id = 'a'", ["a"]),
        ("UPDATE clients SET id = 'x' WHERE id = 'a'", ["x"]),
        ("REPLACE INTO clients (id, item) VALUES ('a', '2')", ["a"]),
        ("INSERT INTO clients (id, item) VALUES ('a', '2') ON CONFLICT DO UPDATE SET item = excluded.item", ["a"]),
        ("UPDATE clients SET revision = 'x'", []),
        ("DELETE FROM clients WHERE id = 'a'", []),
        ("UPDATE clients SET item = '2'; VACUUM", ["a", "b"]),
        ("ALTER TABLE clients ADD COLUMN mine; UPDATE clients SET mine = 1", []),
    ])
    func whatOthersWriteIsUnkeyed(_ sql: String, unkeyed: [String]) throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients", indexes: ["m", "n"])
        _ = try backend.write(["a", "b"].map { .put($0, "1", keys: ["", "old"], in: clients) })
        try Inspector(path).execute(sql)
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .unkeyed(1)) == unkeyed)
        let all = try reader.ids(clients)
        #expect(try reader.ids(clients, .keys(1)) == all.filter { !unkeyed.contains($0) })
        let outcomes = try backend.write(
            all.map { .put($0, "3", revision: "r3", keys: ["k", "k"], in: clients) })
        #expect(outcomes == all.map { _ in .replaced })
        reader.endSnapshot()
        #expect(try reader.ids(clients, .keys(1)) == all)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    /// No call may take long because of an index: neither making it nor asking for what is not in it.
    @Test func takesNoTimeForTheRecordsThatAreThere() throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        var clients = try backend.open("clients")
        let item = String(repeating: "x", count: 400)
        for batch in 0..<30 {
            _ = try backend.write((0..<10_000).map { .put("id\(batch * 10_000 + $0)", item, in: clients) })
        }
        let time = try ThreadTime.measure {
            clients = try backend.open("clients", indexes: ["a", "b", "c", "d", "e", "f"])
        }
        // One of them alone would take longer if its rows were visited.
        #expect(time < .milliseconds(60))
    }
}
