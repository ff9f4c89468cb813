import CRUDPluginABI
import CRUDTestSupport
import Glibc
import Testing

@Suite struct FailureTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
    }

    @Test func appliesNothingWhileAnotherProcessWrites() throws {
        let store = try Store(path: path)
        let clients = try store.collection("clients")
        let inspector = try Inspector(path)
        try inspector.execute("BEGIN IMMEDIATE")
        let failures = [
            try failure { try store.write([.put("a", "1")], to: clients) },
            try failure { _ = try store.collection("others") },
            try failure { try store.dropCollection("clients") },
        ]
        #expect(failures.map { $0?.status } == [CRUDD_UNAVAILABLE, CRUDD_UNAVAILABLE, CRUDD_UNAVAILABLE])
        #expect(try store.reader().count(clients) == 0, "reading continues")
        try inspector.execute("COMMIT")
        #expect(try store.write([.put("a", "1", "r", CRUDD_IF_ABSENT)], to: clients) == [.created])
        #expect(try store.collectionNames() == ["clients"])
    }

    @Test func reportsPagesThatAreNotWhatTheyWere() throws {
        do {
            let store = try Store(path: path)
            let clients = try store.collection("clients")
            try store.write((0..<3000).map { .put("k\($0)", String(repeating: "x", count: 200)) }, to: clients)
        }
        var content = try Files.read(path)
        for index in 20 * 4096..<content.count { content[index] = 0xA5 }
        try Files.write(content, to: path)
        let store = try Store(path: path)
        let clients = try store.collection("clients")
        #expect(try failure { _ = try store.reader().scan(clients) }?.status == CRUDD_CORRUPT)
        let all = (0..<3000).map { "k\($0)" }
        #expect(try failure { _ = try store.reader().read(all, in: clients) }?.status == CRUDD_CORRUPT)
        #expect(try failure { try store.write(all.map { .put($0, "1") }, to: clients) }?.status == CRUDD_CORRUPT)
    }

    @Test func reportsAFileThatWasCutShort() throws {
        do {
            let store = try Store(path: path)
            let clients = try store.collection("clients")
            try store.write((0..<3000).map { .put("k\($0)", String(repeating: "x", count: 200)) }, to: clients)
        }
        try Files.write(Array(try Files.read(path).prefix(30 * 4096)), to: path)
        #expect(try failure { _ = try Store(path: path) }?.status == CRUDD_CORRUPT)
    }

    @Test func appliesNothingOnceTheDiskIsFull() async {
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try Store(path: path)
            let clients = try store.collection("clients")
            try store.write([.put("a", "1")], to: clients)
            // No file may grow beyond this: what the kernel says then differs from a full disk in the number alone.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: rlim_t.max)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let item = String(repeating: "x", count: 100_000)
            var applied = 0
            var failed: PluginFailure?
            while failed == nil, applied < 100 {
                failed = try failure {
                    try store.write([.put("b\(applied)", item), .put("c\(applied)", item)], to: clients)
                    applied += 1
                }
            }
            #expect(failed?.status == CRUDD_NO_SPACE)
            let reader = try store.reader()
            #expect(try reader.count(clients) == UInt64(1 + 2 * applied))
            limit.rlim_cur = rlim_t.max
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            #expect(try store.write([.put("d", item)], to: clients) == [.created], "it continues once there is space")
        }
    }

    @Test func keepsWhatWasAcknowledgedWhenItIsKilled() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try Store(path: path)
            let clients = try store.collection("clients")
            for batch in 0..<20 {
                try store.write((0..<50).map { .put("\(batch).\($0)", "\(batch * $0)") }, to: clients)
            }
            kill(getpid(), SIGKILL)
        }
        let store = try Store(path: path)
        let reader = try store.reader()
        let clients = try store.collection("clients", creates: false)
        #expect(try reader.count(clients) == 1000)
        #expect(try reader.item("19.49", in: clients) == "931")
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }
}
