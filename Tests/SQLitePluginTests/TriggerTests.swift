import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// Triggers and constraints that an administrator has put on a table, and that refuse what the host writes.
@Suite struct TriggerTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path)
        clients = try backend.open("clients")
    }

    private func add(_ trigger: String) throws {
        try Inspector(path).execute("CREATE TRIGGER mine \(trigger) END")
    }

    /// What another process sees, so that it is committed.
    private func items() throws -> [[String]] {
        try Inspector(path).rows("SELECT id, item FROM clients ORDER BY id")
    }

    /// RAISE(ROLLBACK) ends the transaction in which the rest of the batch is, and RAISE(FAIL) leaves the row behind.
    @Test(
        arguments: ["ROLLBACK, 'no'", "FAIL, 'no'", "ABORT, 'no'"],
        ["BEFORE INSERT ON clients WHEN new.item = 'bad'", "AFTER INSERT ON clients WHEN new.item = 'bad'"])
    func costOnlyTheMutationThatTheyRefuse(action: String, event: String) throws {
        try add("\(event) BEGIN SELECT RAISE(\(action));")
        _ = try backend.write([.put("old", "1", revision: "r1", in: clients)])
        let version = try backend.reader().dataVersion()
        let outcomes = try backend.write([
            .put("a", "1", in: clients), .put("x", "bad", in: clients), .put("b", "2", in: clients),
            .put("y", "bad", if: .absent, in: clients), .put("a", "3", if: .absent, in: clients),
            .remove("old", if: .revision("r1"), in: clients), .put("z", "bad", in: clients),
        ])
        #expect(outcomes == [.created, .unsupported, .created, .unsupported, .exists, .removed, .unsupported])
        #expect(try items() == [["a", "1"], ["b", "2"]])
        #expect(try backend.write([.put("x", "bad", in: clients)]) == [.unsupported])
        #expect(try backend.write([.put("c", "3", in: clients)]) == [.created])
        #expect(try items() == [["a", "1"], ["b", "2"], ["c", "3"]])
        #expect(try backend.reader().dataVersion() == version, "all of that was our own")
    }

    @Test(arguments: ["ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
    func undoAnAtomicBatch(action: String) throws {
        try add("BEFORE INSERT ON clients WHEN new.item = 'bad' BEGIN SELECT RAISE(\(action));")
        let outcomes = try backend.write(
            [("a", "1"), ("x", "bad"), ("b", "2")].map { .put($0, $1, in: clients) }, isAtomic: true)
        #expect(outcomes[1] == .unsupported)
        #expect(try items() == [])
    }

    @Test func haveNoSuccessWhereTheyIgnoreTheStatement() throws {
        _ = try backend.write([
            .put("a", "1", revision: "r1", in: clients), .put("b", "1", revision: "r1", expiresAt: 1, in: clients),
        ])
        for event in ["INSERT", "UPDATE", "DELETE"] {
            try Inspector(path).execute(
                "CREATE TRIGGER mine_\(event) BEFORE \(event) ON clients BEGIN SELECT RAISE(IGNORE); END")
        }
        let changes: [PluginMutation] = [
            .put("a", "2", in: clients), .put("a", "2", if: .present, in: clients),
            .put("a", "2", if: .revision("r1"), in: clients), .remove("a", in: clients),
            .remove("a", if: .revision("r1"), in: clients), .put("b", "2", in: clients), .put("c", "2", in: clients),
            .put("c", "2", if: .absent, in: clients),
        ]
        for change in changes { #expect(try backend.write([change]) == [.unsupported], "\(change)") }
        #expect(try backend.write(changes) == changes.map { _ in .unsupported })
        #expect(try items() == [["a", "1"], ["b", "1"]])
    }

    /// Keys that a trigger has ignored are not stored.
    @Test func haveNoSuccessWhereTheyIgnoreKeys() throws {
        _ = try backend.write([.put("a", "1", revision: "r1", in: clients)])
        let clients = try backend.open("clients", indexes: ["name"])
        try add("BEFORE UPDATE ON clients BEGIN SELECT RAISE(IGNORE);")
        #expect(try backend.write([.setKeys("a", [[1]], ifRevision: "r1", in: clients)]) == [.unsupported])
        #expect(try backend.reader().ids(clients, .unkeyed(0)) == ["a"])
    }

    @Test func areNoneOfTheHostsBusinessWhereTheyOnlyAdd() throws {
        try Inspector(path).execute("CREATE TABLE audit (id)")
        try add("AFTER INSERT ON clients BEGIN INSERT INTO audit VALUES (new.id);")
        #expect(
            try backend.write([.put("a", "1", in: clients), .put("a", "2", in: clients)]) == [.created, .replaced])
        #expect(try Inspector(path).rows("SELECT id FROM audit") == [["a"]])
    }
}
