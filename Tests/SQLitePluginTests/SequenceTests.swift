import CRUDPluginABI
import CRUDPluginTesting
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
        let backend = try PluginBackend(path: path)
        #expect(backend.storedLastSequence == 0)
        let clients = try backend.open("clients")
        _ = try backend.write([
            .put("a", "1", sequence: 7, in: clients), .put("b", "1", sequence: 8, in: clients),
            .put("a", "2", sequence: 9, in: clients),
        ])
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('c', '1')")
        #expect(try backend.reader().scan(clients).map(\.sequence) == [9, 8, 0])
    }

    @Test(arguments: [false, true])
    func areAnOrderToScanIn(isReversed: Bool) throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients", hasSequences: true)
        _ = try backend.write((1...9).map { .put("\(10 - $0)", "1", sequence: 10 * $0, in: clients) })
        var removal = PluginMutation.remove("1", in: clients)
        removal.sequence = 110
        _ = try backend.write([.put("5", "2", sequence: 100, in: clients), removal])
        try Inspector(path).execute("INSERT INTO clients (id, item) VALUES ('hand', '1')")
        let reader = try backend.reader()
        // The last one is the removal.
        let all = ["9", "8", "7", "6", "4", "3", "2", "5", "1"]
        func directed(_ ids: [String]) -> [String] { isReversed ? ids.reversed() : ids }
        for (lower, upper, expected): (UInt64, UInt64, [String]) in [
            (0, 0, all), (31, 0, Array(all.dropFirst(3))), (30, 41, ["7", "6"]), (30, 40, ["7"]), (101, 110, []),
            (0, 1, []), (100, .max, ["5", "1"]),
        ] {
            let range = PluginRange.sequences(from: lower, to: upper)
            let ids = try reader.ids(clients, range, isReversed: isReversed)
            #expect(ids == directed(expected), "\(lower)..<\(upper)")
            #expect(try reader.count(clients, range) == expected.count { $0 != "1" })
        }
        let first = try reader.ids(clients, .sequences(), isReversed: isReversed, limit: 3)
        #expect(first == Array(directed(all).prefix(3)))
    }

    @Test func haveAnOrderWhereThatWasAskedForAlone() throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: clients)])
        let reader = try backend.reader()
        #expect(try failure { try reader.scan(clients, .sequences()) }?.status == CRUDD_UNSUPPORTED)
        #expect(try backend.open("clients", hasSequences: true) == clients)
        #expect(try reader.ids(clients, .sequences()) == ["a"])
        _ = try backend.open("clients")
        #expect(try Inspector(path).rows("SELECT * FROM sqlite_schema WHERE name LIKE 'crudd_sequence_%'") == [])
    }

    @Test func noNumberIsUsedTwice() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients")
            _ = try backend.write([.put("a", "1", sequence: 3_000_000, in: clients), .remove("a", in: clients)])
            kill(getpid(), SIGKILL)
        }
        var backend = try PluginBackend(path: path)
        let first = backend.storedLastSequence
        #expect(first > 3_000_001)
        let clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: clients), .remove("a", in: clients)])
        backend = try PluginBackend(path: path)
        #expect(backend.storedLastSequence > first)
        #expect(try Inspector(path).rows("SELECT count(*) FROM crudd_sequence") == [["1"]])
    }

    @Test func aBatchThatIsUndoneReservesNothing() throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        let changes: [PluginMutation] = [.put("a", "1", in: clients), .put("a", "2", if: .absent, in: clients)]
        #expect(try backend.write(changes, isAtomic: true)[1] == .exists)
        #expect(try backend.write([.put("a", "1", in: clients)]) == [.created])
        #expect(try PluginBackend(path: path).storedLastSequence > 0)
    }
}
