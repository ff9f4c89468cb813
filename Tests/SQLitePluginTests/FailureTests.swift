import CRUDPluginABI
import CRUDPluginTesting
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
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        let inspector = try Inspector(path)
        try inspector.execute("BEGIN IMMEDIATE")
        #expect(try failure { try backend.write([.put("a", "1", in: clients)]) }?.status == CRUDD_UNAVAILABLE)
        let looks = backend.progressCount
        #expect(looks > 200)
        // The times of those behind it do not add up.
        let failures = [
            try failure { try backend.write([.put("a", "1", in: clients)]) },
            try failure { try backend.open("others") },
            try failure { try backend.drop("clients") },
        ]
        #expect(failures.map { $0?.status } == [CRUDD_UNAVAILABLE, CRUDD_UNAVAILABLE, CRUDD_UNAVAILABLE])
        #expect(backend.progressCount - looks < 100)
        #expect(try backend.reader().count(clients) == 0, "reading continues")
        try inspector.execute("COMMIT")
        #expect(try backend.write([.put("a", "1", if: .absent, in: clients)]) == [.created])
        #expect(try backend.collections() == ["clients"])
    }

    /// As Litestream does while it copies a long log, on a slow disk.
    @Test func aWriteWaitsForAnotherProcessThatWritesForASecond() throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        let lock = try SQLiteLock(of: path, seconds: 1)
        #expect(try backend.write([.put("a", "1", if: .absent, in: clients)]) == [.created])
        try lock.end()
    }

    /// A checkpoint keeps writers out and waits for readers. The plugin's own release their snapshots meanwhile.
    @Test func aWriteThatWaitsHoldsUpNoCheckpoint() throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: clients)])
        let reader = try backend.reader()
        #expect(try reader.read("a", in: clients) != nil)
        _ = try backend.write([.put("b", "1", in: clients)])
        let program = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
            sys.exit(database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            """
        let checkpoint = try ChildProcess("/usr/bin/python3", ["-c", program, path], descriptors: [])
        let inspector = try Inspector(path)
        let deadline = Deadline()
        while (try? inspector.execute("BEGIN IMMEDIATE; COMMIT")) != nil {
            try #require(!deadline.hasPassed, "the checkpoint does not keep writers out")
        }
        #expect(try backend.write([.put("c", "1", in: clients)]) == [.created])
        #expect(try checkpoint.waitForExit() == .exited(0))
        #expect(try reader.read("c", in: clients) != nil)
    }

    /// Others wait behind it.
    @Test func upkeepWaitsBrieflyForAnotherProcess() throws {
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", expiresAt: 1, in: clients)])
        let lock = try SQLiteLock(of: path)
        let looks = backend.progressCount
        #expect(try failure { try backend.removeExpired(from: clients, limit: 1) }?.status == CRUDD_UNAVAILABLE)
        #expect((1..<100).contains(backend.progressCount - looks))
        try lock.end()
        #expect(try backend.removeExpired(from: clients, limit: 1).removed.count == 1)
    }

    @Test func reportsPagesThatAreNotWhatTheyWere() throws {
        do {
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients")
            _ = try backend.write((0..<3000).map { .put("k\($0)", String(repeating: "x", count: 200), in: clients) })
        }
        var content = try Files.read(path)
        for index in 20 * 4096..<content.count { content[index] = 0xA5 }
        try Files.write(content, to: path)
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        #expect(try failure { try backend.reader().scan(clients) }?.status == CRUDD_CORRUPT)
        let all = (0..<3000).map { "k\($0)" }
        #expect(try failure { try backend.reader().read(all, in: clients) }?.status == CRUDD_CORRUPT)
        #expect(try failure { try backend.write(all.map { .put($0, "1", in: clients) }) }?.status == CRUDD_CORRUPT)
    }

    @Test func reportsAFileThatWasCutShort() throws {
        do {
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients")
            _ = try backend.write((0..<3000).map { .put("k\($0)", String(repeating: "x", count: 200), in: clients) })
        }
        try Files.write(Array(try Files.read(path).prefix(30 * 4096)), to: path)
        #expect(try failure { try PluginBackend(path: path) }?.status == CRUDD_CORRUPT)
    }

    @Test func appliesNothingOnceTheDiskIsFull() async {
        await #expect(processExitsWith: .success) { [path = path as String] in
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients")
            _ = try backend.write([.put("a", "1", in: clients)])
            // No file may grow beyond this: what the kernel says then differs from a full disk in the number alone.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: rlim_t.max)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let item = String(repeating: "x", count: 100_000)
            var applied = 0
            var failed: CallError?
            while failed == nil, applied < 100 {
                failed = try failure {
                    _ = try backend.write(["b", "c"].map { .put("\($0)\(applied)", item, in: clients) })
                    applied += 1
                }
            }
            #expect(failed?.status == CRUDD_NO_SPACE)
            let reader = try backend.reader()
            #expect(try reader.count(clients) == 1 + 2 * applied)
            limit.rlim_cur = rlim_t.max
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            #expect(try backend.write([.put("d", item, in: clients)]) == [.created], "it continues once there is space")
        }
    }

    @Test func keepsWhatWasAcknowledgedWhenItIsKilled() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients")
            for batch in 0..<20 {
                _ = try backend.write((0..<50).map { .put("\(batch).\($0)", "\(batch * $0)", in: clients) })
            }
            kill(getpid(), SIGKILL)
        }
        let backend = try PluginBackend(path: path)
        let reader = try backend.reader()
        let clients = try backend.open("clients", creates: false)
        #expect(try reader.count(clients) == 1000)
        #expect(try reader.read("19.49", in: clients)?.item == "931")
        #expect(try Inspector(path).rows("PRAGMA integrity_check") == [["ok"]])
    }
}
