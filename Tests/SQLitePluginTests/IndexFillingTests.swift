import CRUDPluginABI
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
        _ store: Store, _ collection: OpaquePointer, after start: String = "", batches: Int = .max
    ) throws {
        let reader = try store.reader()
        var last = start
        for _ in 0..<batches {
            let page = try reader.scan(collection, .unkeyed(0, after: last), limit: 100)
            guard let end = page.last else { return }
            try store.write(page.map { .setKeys($0.idText, ["k\($0.itemText)"]) }, to: collection)
            last = end.idText
            reader.endSnapshot()
        }
    }

    private func filledBelow() throws -> String {
        try Inspector(path).rows("SELECT typeof(filled_below) || ' ' || filled_below FROM crudd_indexes")[0][0]
    }

    @Test func recordsThatWereThereAreUnkeyedUntilTheyAreFilled() throws {
        let store = try Store(path: path, synchronous: "off")
        var clients = try store.collection("clients")
        try store.write((0..<1000).map { .put("id\(1000 + $0)", "\($0 % 7)") }, to: clients)
        clients = try store.collection("clients", indexes: ["n"])
        let reader = try store.reader()
        #expect(try reader.count(clients, .unkeyed(0)) == 1000)
        #expect(try reader.ids(clients, .key(0)).isEmpty)
        #expect(try reader.ids(clients, .unkeyed(0, isReversed: true), limit: 2) == ["id1999", "id1998"])
        #expect(try filledBelow() == "text id1000")
        try Self.fill(store, clients, batches: 3)
        #expect(try filledBelow() == "text id1300")
        // What is written meanwhile has its key at once, or none for good.
        try store.write(
            [.put("id1500", "1", keys: ["k1"]), .put("id1001", "1"), .put("new", "1", keys: ["k1"])], to: clients)
        reader.endSnapshot()
        #expect(try reader.count(clients, .unkeyed(0)) == 700)
        #expect(try reader.ids(clients, .unkeyed(0), limit: 2) == ["id1001", "id1300"])
        #expect(try reader.count(clients, .key(0)) == 301)
        try Self.fill(store, clients, after: "id1299")
        #expect(try filledBelow() == "blob ")
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["id1001"])
        #expect(try reader.count(clients, .key(0)) == 1000)
    }

    @Test func fillingContinuesAfterTheProcessWasKilled() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try Store(path: path)
            var clients = try store.collection("clients")
            try store.write((0..<1000).map { .put("id\(1000 + $0)", "\($0 % 7)") }, to: clients)
            clients = try store.collection("clients", indexes: ["n"])
            try Self.fill(store, clients, batches: 4)
            kill(getpid(), SIGKILL)
        }
        let store = try Store(path: path)
        let clients = try store.collection("clients", indexes: ["n"])
        let reader = try store.reader()
        #expect(try reader.ids(clients, .unkeyed(0), limit: 1) == ["id1400"])
        #expect(try reader.count(clients, .key(0)) == 400)
        try Self.fill(store, clients)
        reader.endSnapshot()
        #expect(try reader.count(clients, .unkeyed(0)) == 0)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func isCompleteOnceTheRestWasRemoved() throws {
        let store = try Store(path: path, synchronous: "off")
        var clients = try store.collection("clients")
        try store.write([.put("a", "1"), .put("b", "1")], to: clients)
        clients = try store.collection("clients", indexes: ["n"])
        store.idle()
        #expect(try filledBelow() == "text a")
        try store.write([.remove("a"), .put("b", "1", keys: ["k"])], to: clients)
        store.idle()
        #expect(try filledBelow() == "blob ")
    }

    @Test func recordsThatHaveExpiredNeedNoKey() throws {
        let store = try Store(path: path, synchronous: "off")
        var clients = try store.collection("clients")
        try store.write([.put("a", "1", expiresAt: 200), .put("b", "1")], to: clients, now: 100)
        clients = try store.collection("clients", indexes: ["n"])
        let reader = try store.reader()
        #expect(try reader.ids(clients, .unkeyed(0), now: 100) == ["a", "b"])
        try Self.fill(store, clients)
        #expect(try filledBelow() == "blob ")
        try Inspector(path).execute("UPDATE clients SET expires_at = NULL WHERE id = 'a'")
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["a"])
    }

    @Test func anEmptyTableNeedsNoFilling() throws {
        let store = try Store(path: path)
        _ = try store.collection("clients", indexes: ["n"])
        #expect(try filledBelow() == "blob ")
    }

    @Test func aSnapshotShowsEachRecordOnce() throws {
        let store = try Store(path: path, synchronous: "off")
        var clients = try store.collection("clients")
        try store.write((0..<100).map { .put("id\(100 + $0)", "1") }, to: clients)
        clients = try store.collection("clients", indexes: ["n"])
        let reader = try store.reader()
        #expect(try reader.count(clients, .unkeyed(0)) == 100)
        try Self.fill(store, clients)
        #expect(try reader.ids(clients, .unkeyed(0)).count == 100, "in the snapshot that it holds")
        #expect(try reader.ids(clients, .key(0)).isEmpty)
        reader.endSnapshot()
        #expect(try reader.ids(clients, .unkeyed(0)).isEmpty)
        #expect(try reader.ids(clients, .key(0)).count == 100)
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
        let store = try Store(path: path)
        let clients = try store.collection("clients", indexes: ["m", "n"])
        try store.write([.put("a", "1", keys: ["", "old"]), .put("b", "1", keys: ["", "old"])], to: clients)
        try Inspector(path).execute(sql)
        let reader = try store.reader()
        #expect(try reader.ids(clients, .unkeyed(1)) == unkeyed)
        let all = try reader.ids(clients, .all)
        #expect(try reader.ids(clients, .key(1)) == all.filter { !unkeyed.contains($0) })
        let changes = all.map { Change.put($0, "3", "r3", keys: ["k", "k"]) }
        #expect(try store.write(changes, to: clients) == all.map { _ in .replaced })
        reader.endSnapshot()
        #expect(try reader.ids(clients, .key(1)) == all)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    /// No call may take long because of an index: neither making it nor asking for what is not in it.
    @Test func takesNoTimeForTheRecordsThatAreThere() throws {
        let store = try Store(path: path, synchronous: "off")
        var clients = try store.collection("clients")
        let item = String(repeating: "x", count: 400)
        for batch in 0..<30 {
            try store.write((0..<10_000).map { .put("id\(batch * 10_000 + $0)", item) }, to: clients)
        }
        let time = try ContinuousClock().measure {
            clients = try store.collection("clients", indexes: ["a", "b", "c", "d", "e", "f"])
        }
        // One of them alone would take longer if its rows were visited.
        #expect(time < .milliseconds(60))
    }
}
