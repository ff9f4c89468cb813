import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// A record that has expired is nowhere to be seen, and in nobody's way.
@Suite struct ExpiryTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path, synchronous: "off")
        clients = try backend.open("clients", indexes: ["n"], hasSequences: true)
        backend.call.now = 100
    }

    @Test func hidesRecordsFromTheirTimeOn() throws {
        _ = try backend.write([
            .put("a", "1", keys: ["k"], in: clients), .put("b", "1", expiresAt: 500, keys: ["k"], in: clients),
            .put("c", "1", expiresAt: 501, keys: ["k"], in: clients), .put("d", "1", expiresAt: 500, in: clients),
            .put("e", "1", in: clients),
        ])
        let reader = try backend.reader()
        #expect(try !reader.scan(clients).isEmpty)
        for (now, keyed, unkeyed): (Int64, [String], [String]) in [
            (499, ["a", "b", "c"], ["d", "e"]), (500, ["a", "c"], ["e"]), (501, ["a"], ["e"]),
        ] {
            backend.call.now = now
            let all = keyed + unkeyed
            #expect(try reader.ids(clients) == all.sorted())
            #expect(try reader.count(clients) == all.count)
            #expect(try reader.count(clients, .prefix("b")) == (keyed.contains("b") ? 1 : 0))
            #expect(try reader.count(clients, limit: 1) >= 1)
            #expect(try reader.ids(clients, .keys(0)) == keyed)
            #expect(try reader.count(clients, .keys(0, from: "k")) == keyed.count)
            #expect(try reader.ids(clients, .unkeyed(0)) == unkeyed)
            #expect(try reader.count(clients, .unkeyed(0)) == unkeyed.count)
            #expect(try reader.ids(clients, .sequences()).count == all.count)
            #expect(try reader.count(clients, .sequences()) == all.count)
            #expect(try reader.read(["a", "b", "c"], in: clients).compactMap { $0?.id } == keyed)
            #expect(try reader.ids(clients, .keys(0), limit: keyed.count) == keyed, "the limit counts what is seen")
        }
        #expect(try reader.count(clients, .keys(0), limit: 1) == 1)
    }

    @Test(arguments: WritingTests.cases)
    func isNotThereForPreconditions(_ test: WritingTests.Case) throws {
        let plain = try backend.open("plain")
        _ = try backend.write([.put("a", "old", revision: "r0", expiresAt: 200, in: plain)])
        backend.call.now = 200
        #expect(try backend.write([test.change(in: plain)]) == [test.missing])
        let isPut = test.kind == .put && test.missing == .created
        #expect(try backend.reader().scan(plain) == (isPut ? [PluginRecord("a", "new", revision: "r1")] : []))
    }

    /// Zero, as the host gives it to plugins, is "never" also in the table.
    @Test func zeroIsNone() throws {
        _ = try backend.write([.put("z", "1", expiresAt: 1 << 50, in: clients)])
        try Inspector(path).execute(
            """
            INSERT INTO clients (id, item, revision, expires_at)
            VALUES ('a', '1', 'r', 0), ('b', '1', 'r', 0), ('c', '1', 'r', 0)
            """)
        let reader = try backend.reader()
        #expect(try reader.count(clients) == 4)
        reader.endSnapshot()
        let outcomes = try backend.write([
            .put("a", "2", if: .absent, in: clients), .put("b", "2", in: clients),
            .put("c", "2", revision: "r2", if: .present, in: clients),
        ])
        #expect(outcomes == [.exists, .replaced, .replaced])
        try Inspector(path).execute("UPDATE clients SET expires_at = 0, revision = 's' WHERE id <> 'z'")
        let more = try backend.write([.remove("b", in: clients), .put("a", "3", if: .revision("s"), in: clients)])
        #expect(more == [.removed, .replaced])
    }

    @Test func isNotThereForChecks() throws {
        _ = try backend.write([.put("a", "1", expiresAt: 200, in: clients)])
        let check = PluginMutation.check("a", if: .absent, in: clients)
        backend.call.now = 199
        #expect(try backend.write([check], isAtomic: true) == [.exists])
        backend.call.now = 200
        #expect(try backend.write([check], isAtomic: true) == [.passed])
    }

    @Test func endsWhenTheRecordIsWrittenAgain() throws {
        _ = try backend.write([.put("a", "1", expiresAt: 200, in: clients)])
        #expect(try backend.write([.put("a", "2", revision: "r2", keys: ["k"], in: clients)]) == [.replaced])
        backend.call.now = 300
        let reader = try backend.reader()
        #expect(try reader.scan(clients).map(\.expiresAt) == [0])
        let later = PluginMutation.put("a", "3", revision: "r3", expiresAt: 7_000_000, in: clients)
        #expect(try backend.write([later]) == [.replaced])
        reader.endSnapshot()
        #expect(try reader.scan(clients).map(\.expiresAt) == [7_000_000])
        backend.call.now = 8_000_000
        #expect(try backend.write([.put("a", "4", revision: "r4", in: clients)]) == [.created])
        reader.endSnapshot()
        backend.call.now = 9_000_000
        #expect(try reader.count(clients) == 1)
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }

    @Test func removesWhatHasExpiredAtAnEarlierClock() throws {
        _ = try backend.write([.put("a", "1", expiresAt: 200, in: clients), .put("b", "1", in: clients)])
        backend.call.now = 300
        #expect(try backend.write([.remove("a", in: clients)]) == [.notFound])
        backend.call.now = 0
        #expect(try backend.write([.remove("a", in: clients)]) == [.removed])
        #expect(try Inspector(path).rows("SELECT id FROM clients") == [["b"]])
    }
}
