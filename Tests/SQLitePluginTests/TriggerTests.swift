import CRUDPluginABI
import CRUDTestSupport
import Testing

/// Triggers and constraints that an administrator has put on a table, and that refuse what the host writes.
@Suite struct TriggerTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store
    private let clients: OpaquePointer

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path)
        clients = try store.collection("clients")
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
        try store.write([.put("old", "1", "r1")], to: clients)
        let version = try store.reader().dataVersion()
        let outcomes = try store.write(
            [
                .put("a", "1"), .put("x", "bad"), .put("b", "2"), .put("y", "bad", "r", CRUDD_IF_ABSENT),
                .put("a", "3", "r", CRUDD_IF_ABSENT), .remove("old", CRUDD_IF_REVISION, expected: "r1"),
                .put("z", "bad"),
            ], to: clients)
        #expect(
            outcomes == [.created, .unsupported, .created, .unsupported, .exists, .removed, .unsupported])
        #expect(try items() == [["a", "1"], ["b", "2"]])
        #expect(try store.write([.put("x", "bad")], to: clients) == [.unsupported])
        #expect(try store.write([.put("c", "3")], to: clients) == [.created])
        #expect(try items() == [["a", "1"], ["b", "2"], ["c", "3"]])
        #expect(try store.reader().dataVersion() == version, "all of that was our own")
    }

    @Test(arguments: ["ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
    func undoAnAtomicBatch(action: String) throws {
        try add("BEFORE INSERT ON clients WHEN new.item = 'bad' BEGIN SELECT RAISE(\(action));")
        let outcomes = try store.write(
            [.put("a", "1"), .put("x", "bad"), .put("b", "2")], to: clients, isAtomic: true)
        #expect(outcomes[1] == .unsupported)
        #expect(try items() == [])
    }

    @Test func haveNoSuccessWhereTheyIgnoreTheStatement() throws {
        try store.write([.put("a", "1", "r1"), .put("b", "1", "r1", expiresAt: 1)], to: clients)
        for event in ["INSERT", "UPDATE", "DELETE"] {
            try Inspector(path).execute(
                "CREATE TRIGGER mine_\(event) BEFORE \(event) ON clients BEGIN SELECT RAISE(IGNORE); END")
        }
        let changes: [Change] = [
            .put("a", "2"), .put("a", "2", "r", CRUDD_IF_PRESENT),
            .put("a", "2", "r", CRUDD_IF_REVISION, expected: "r1"), .remove("a"),
            .remove("a", CRUDD_IF_REVISION, expected: "r1"), .put("b", "2"), .put("c", "2"),
            .put("c", "2", "r", CRUDD_IF_ABSENT),
        ]
        for change in changes { #expect(try store.write([change], to: clients) == [.unsupported], "\(change)") }
        #expect(try store.write(changes, to: clients) == changes.map { _ in .unsupported })
        #expect(try items() == [["a", "1"], ["b", "1"]])
    }

    /// Keys that a trigger has ignored are not stored.
    @Test func haveNoSuccessWhereTheyIgnoreKeys() throws {
        try store.write([.put("a", "1", "r1")], to: clients)
        let clients = try store.collection("clients", indexes: ["name"])
        try add("BEFORE UPDATE ON clients BEGIN SELECT RAISE(IGNORE);")
        #expect(try store.write([.setKeys("a", ["k"], ifRevision: "r1")], to: clients) == [.unsupported])
        #expect(try store.reader().ids(clients, .unkeyed(0)) == ["a"])
    }

    @Test func areNoneOfTheHostsBusinessWhereTheyOnlyAdd() throws {
        try Inspector(path).execute("CREATE TABLE audit (id)")
        try add("AFTER INSERT ON clients BEGIN INSERT INTO audit VALUES (new.id);")
        #expect(try store.write([.put("a", "1"), .put("a", "2")], to: clients) == [.created, .replaced])
        #expect(try Inspector(path).rows("SELECT id FROM audit") == [["a"]])
    }
}
