import CRUDPluginABI
import CRUDTestSupport
import Glibc
import Testing

@Suite struct SequenceTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
    }

    @Test func areStoredAndReturned() throws {
        let store = try Store(path: path)
        #expect(store.lastSequence == 0)
        let clients = try store.collection("clients")
        try store.write(
            [.put("a", "1", sequence: 7), .put("b", "1", sequence: 8), .put("a", "2", sequence: 9)], to: clients)
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('c', '1')")
        #expect(try store.reader().metadata(clients).map(\.sequence) == [9, 8, 0])
    }

    @Test(arguments: [false, true])
    func areAnOrderToScanIn(isReversed: Bool) throws {
        let store = try Store(path: path)
        let clients = try store.collection("clients", keepsSequences: true)
        try store.write((1...9).map { .put("\(10 - $0)", "1", sequence: 10 * $0) }, to: clients)
        try store.write([.put("5", "2", sequence: 100), .remove("1", sequence: 110)], to: clients)
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('hand', '1')")
        let reader = try store.reader()
        // The last one is the removal.
        let all = ["9", "8", "7", "6", "4", "3", "2", "5", "1"]
        func directed(_ ids: [String]) -> [String] { isReversed ? ids.reversed() : ids }
        for (lower, upper, expected): (UInt64, UInt64, [String]) in [
            (0, 0, all), (31, 0, Array(all.dropFirst(3))), (30, 41, ["7", "6"]), (30, 40, ["7"]), (101, 110, []),
            (0, 1, []), (100, .max, ["5", "1"]),
        ] {
            let range = ScanRange.sequence(from: lower, below: upper, isReversed: isReversed)
            #expect(try reader.ids(clients, range) == directed(expected), "\(lower)..<\(upper)")
            #expect(try reader.count(clients, range) == UInt64(expected.count { $0 != "1" }))
        }
        #expect(try reader.ids(clients, .sequence(isReversed: isReversed), limit: 3) == Array(directed(all).prefix(3)))
    }

    @Test func haveAnOrderWhereThatWasAskedForAlone() throws {
        let store = try Store(path: path)
        let clients = try store.collection("clients")
        try store.write([.put("a", "1")], to: clients)
        let reader = try store.reader()
        #expect(try failure { _ = try reader.scan(clients, .sequence()) }?.status == CRUDD_UNSUPPORTED)
        #expect(try store.collection("clients", keepsSequences: true) == clients)
        #expect(try reader.ids(clients, .sequence()) == ["a"])
        _ = try store.collection("clients")
        #expect(try Inspector(path).rows("SELECT * FROM sqlite_schema WHERE name LIKE 'crudd_sequence_%'") == [])
    }

    @Test func noNumberIsUsedTwice() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try Store(path: path)
            let clients = try store.collection("clients")
            try store.write([.put("a", "1", sequence: 3_000_000), .remove("a")], to: clients)
            kill(getpid(), SIGKILL)
        }
        var store = try Store(path: path)
        let first = store.lastSequence
        #expect(first > 3_000_000)
        try store.write([.put("a", "1"), .remove("a")], to: store.collection("clients"))
        store = try Store(path: path)
        #expect(store.lastSequence > first)
        #expect(try Inspector(path).rows("SELECT count(*) FROM crudd_sequence") == [["1"]])
    }

    @Test func aBatchThatIsUndoneReservesNothing() throws {
        let store = try Store(path: path)
        let clients = try store.collection("clients")
        let changes: [Change] = [.put("a", "1"), .put("a", "2", "r", CRUDD_IF_ABSENT)]
        #expect(try store.write(changes, to: clients, isAtomic: true)[1] == .exists)
        #expect(try store.write([.put("a", "1")], to: clients) == [.created])
        #expect(try Store(path: path).lastSequence > 0)
    }
}
