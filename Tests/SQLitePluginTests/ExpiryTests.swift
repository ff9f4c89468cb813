import CRUDPluginABI
import CRUDTestSupport
import Testing

/// A record that has expired is nowhere to be seen, and in nobody's way.
@Suite struct ExpiryTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store
    private let clients: OpaquePointer

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path, synchronous: "off")
        clients = try store.collection("clients", keepsSequences: true, indexes: ["n"])
    }

    @Test func hidesRecordsFromTheirTimeOn() throws {
        try store.write(
            [
                .put("a", "1", keys: ["k"]), .put("b", "1", expiresAt: 500, keys: ["k"]),
                .put("c", "1", expiresAt: 501, keys: ["k"]), .put("d", "1", expiresAt: 500), .put("e", "1"),
            ], to: clients, now: 100)
        let reader = try store.reader()
        #expect(try reader.metadata(clients).isEmpty == false)
        for (now, keyed, unkeyed): (Int64, [String], [String]) in [
            (499, ["a", "b", "c"], ["d", "e"]), (500, ["a", "c"], ["e"]), (501, ["a"], ["e"]),
        ] {
            let all = keyed + unkeyed
            #expect(try reader.ids(clients, .all, now: now) == all.sorted())
            #expect(try reader.count(clients, now: now) == UInt64(all.count))
            #expect(try reader.count(clients, .prefix("b"), now: now) == (keyed.contains("b") ? 1 : 0))
            #expect(try reader.count(clients, .after(""), limit: 1, now: now) >= 1)
            #expect(try reader.ids(clients, .key(0), now: now) == keyed)
            #expect(try reader.count(clients, .key(0, from: "k"), now: now) == UInt64(keyed.count))
            #expect(try reader.ids(clients, .unkeyed(0), now: now) == unkeyed)
            #expect(try reader.count(clients, .unkeyed(0), now: now) == UInt64(unkeyed.count))
            #expect(try reader.ids(clients, .sequence(), now: now).count == all.count)
            #expect(try reader.count(clients, .sequence(), now: now) == UInt64(all.count))
            #expect(try reader.read(["a", "b", "c"], in: clients, call: Call(now: now)).map(\.idText) == keyed)
            #expect(
                try reader.ids(clients, .key(0), limit: keyed.count, now: now) == keyed, "the limit counts what is seen"
            )
        }
        #expect(try reader.count(clients, .key(0), limit: 1, now: 501) == 1)
    }

    @Test(arguments: WritingTests.cases)
    func isNotThereForPreconditions(_ test: WritingTests.Case) throws {
        let plain = try store.collection("plain")
        try store.write([.put("a", "old", "r0", expiresAt: 200)], to: plain, now: 100)
        #expect(try store.write([test.change], to: plain, now: 200) == [test.missing])
        let isPut = test.change.kind == CRUDD_PUT && test.missing.status == CRUDD_OK
        #expect(try store.reader().scan(plain, call: Call(now: 200)) == (isPut ? [Record(0, "a", "new", "r1")] : []))
    }

    /// Zero, as the host gives it to plugins, is "never" also in the table.
    @Test func zeroIsNone() throws {
        try store.write([.put("z", "1", expiresAt: 1 << 50)], to: clients)
        try Inspector(path).execute(
            """
            INSERT INTO clients (id, item, revision, expires_at)
            VALUES ('a', '1', 'r', 0), ('b', '1', 'r', 0), ('c', '1', 'r', 0)
            """)
        let reader = try store.reader()
        #expect(try reader.count(clients, now: 100) == 4)
        reader.endSnapshot()
        #expect(
            try store.write(
                [
                    .put("a", "2", "r", CRUDD_IF_ABSENT), .put("b", "2"), .put("c", "2", "r2", CRUDD_IF_PRESENT),
                ], to: clients, now: 100) == [.exists, .replaced, .replaced])
        try Inspector(path).execute("UPDATE clients SET expires_at = 0, revision = 's' WHERE id <> 'z'")
        #expect(
            try store.write(
                [.remove("b"), .put("a", "3", "r", CRUDD_IF_REVISION, expected: "s")], to: clients, now: 100)
                == [.removed, .replaced])
    }

    @Test func isNotThereForChecks() throws {
        try store.write([.put("a", "1", expiresAt: 200)], to: clients, now: 100)
        let check = Change(kind: CRUDD_CHECK, id: "a", precondition: CRUDD_IF_ABSENT)
        #expect(try store.write([check], to: clients, isAtomic: true, now: 199) == [.exists])
        #expect(try store.write([check], to: clients, isAtomic: true, now: 200) == [.created])
    }

    @Test func endsWhenTheRecordIsWrittenAgain() throws {
        try store.write([.put("a", "1", expiresAt: 200)], to: clients, now: 100)
        #expect(try store.write([.put("a", "2", "r2", keys: ["k"])], to: clients, now: 100) == [.replaced])
        let reader = try store.reader()
        #expect(try reader.metadata(clients).map(\.expiresAt) == [0])
        #expect(try store.write([.put("a", "3", "r3", expiresAt: 7_000_000)], to: clients, now: 300) == [.replaced])
        reader.endSnapshot()
        #expect(try reader.metadata(clients).map(\.expiresAt) == [7_000_000])
        #expect(try store.write([.put("a", "4", "r4")], to: clients, now: 8_000_000) == [.created])
        reader.endSnapshot()
        #expect(try reader.count(clients, now: 9_000_000) == 1)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func removesWhatHasExpiredAtAnEarlierClock() throws {
        try store.write([.put("a", "1", expiresAt: 200), .put("b", "1")], to: clients, now: 100)
        #expect(try store.write([.remove("a")], to: clients, now: 300) == [.notFound])
        #expect(try store.write([.remove("a")], to: clients, now: 0) == [.removed])
        #expect(try Inspector(path).rows("SELECT id FROM clients") == [["b"]])
    }
}
