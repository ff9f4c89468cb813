import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

@Suite struct OpeningTests {
    private let directory = try? TemporaryDirectory()

    private var path: String {
        get throws { "\(try #require(directory).path)/main.sqlite" }
    }

    @Test func makesFilesThatOnlyTheOwnerMayRead() throws {
        let backend = try PluginBackend(path: path)
        _ = try backend.write([.put("a", "1", in: backend.open("clients"))])
        for file in [try path, "\(try path)-wal", "\(try path)-shm"] {
            let status = try #require(Files.status(file))
            #expect(status.st_mode & 0o777 == 0o600, "\(file)")
        }
    }

    @Test func findsEverythingAgain() throws {
        do {
            let backend = try PluginBackend(path: path)
            _ = try backend.write([.put("a", "{\"x\":1}", revision: "r1", in: backend.open("clients"))])
        }
        #expect(!Files.exists("\(try path)-wal"), "a clean end leaves one file")
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients", creates: false)
        #expect(try backend.reader().read("a", in: clients) == PluginRecord("a", "{\"x\":1}", revision: "r1"))
    }

    @Test func anotherProcessCannotOpenItToo() throws {
        let lock = "\(try path)-lock"
        let descriptor = open(lock, O_RDONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let failure = try failure { try PluginBackend(path: path) }
        #expect(failure?.status == CRUDD_UNAVAILABLE)
        #expect(failure?.message == "another process has locked \(lock)")
        close(descriptor)
        do {
            let backends = try [PluginBackend(path: path), PluginBackend(path: path)]
            #expect(try Command.run("flock", ["--nonblock", lock, "true"]).status != .exited(0))
            withExtendedLifetime(backends) {}
        }
        #expect(try Command.run("flock", ["--nonblock", lock, "true"]).status == .exited(0))
    }

    @Test func saysWhatItsOptionsTakeAway() throws {
        #expect(try PluginBackend(path: path).has(CRUDD_IS_DURABLE))
        #expect(try !PluginBackend(path: path, synchronous: "normal").has(CRUDD_IS_DURABLE))
        #expect(try !PluginBackend(path: path, synchronous: "off").has(CRUDD_IS_DURABLE))
    }

    /// A bad sector under mapped memory is SIGBUS, not an error.
    @Test(arguments: [(nil, false), (false, false), (true, true)])
    func mapsTheFileOnlyWhereItIsTold(mmap: Bool?, isMapped: Bool) throws {
        let path = try path
        let backend = try PluginBackend(path: path, mmap: mmap)
        let clients = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: clients)])
        // What is in the write-ahead log alone is not read from the file.
        try Inspector(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let reader = try backend.reader()
        #expect(try reader.read("a", in: clients) != nil)
        let maps = String(decoding: try Files.read("/proc/self/maps"), as: UTF8.self)
        #expect(maps.split(separator: "\n").contains { $0.hasSuffix(path) } == isMapped)
    }

    @Test func recordsItsSchemaVersion() throws {
        _ = try PluginBackend(path: path)
        let inspector = try Inspector(path)
        #expect(try inspector.rows("PRAGMA user_version") == [["4"]])
        #expect(try inspector.rows("PRAGMA application_id") == [["\(0x6372_7564)"]])
        #expect(try inspector.rows("PRAGMA journal_mode") == [["wal"]])
    }

    // MARK: What can never be

    private func expectInvalid(_ path: String, _ reason: String) throws {
        let failure = try #require(try failure { try PluginBackend(path: path) })
        #expect(failure.status == CRUDD_INVALID_OPTIONS)
        #expect(failure.pointer == "/path")
        #expect(failure.message.hasPrefix(path) && failure.message.contains(reason), "\(failure.message)")
    }

    @Test func refusesAPathThatCanNeverBe() throws {
        let directory = try #require(directory).path
        try expectInvalid("\(directory)/missing/main.sqlite", "main.sqlite lies in a directory that does not exist")
        try expectInvalid(directory, "is not a regular file")
        try Files.write("", to: "\(directory)/file")
        try expectInvalid("\(directory)/file/main.sqlite", "Not a directory")
        try #require(symlink("\(directory)/nowhere", "\(directory)/link") == 0)
        try expectInvalid("\(directory)/link", "No such file or directory")
        try #require(mkfifo("\(directory)/fifo", 0o600) == 0)
        try expectInvalid("\(directory)/fifo", "is not a regular file")
    }

    @Test func refusesAFileThatIsNotADatabaseAndLeavesItAlone() throws {
        let text = String(repeating: "root:x:0:0:root:/root:/bin/bash\n", count: 100)
        try Files.write(text, to: path)
        try expectInvalid(path, "is not a SQLite database")
        #expect(try Files.read(path) == Array(text.utf8))
    }

    @Test func refusesADatabaseOfAnotherProgramAndLeavesItAlone() throws {
        do {
            let inspector = try Inspector(path)
            try inspector.execute("CREATE TABLE photos (x); INSERT INTO photos VALUES (1)")
        }
        let before = try Files.read(path)
        try expectInvalid(path, "is a database of another program")
        #expect(try Files.read(path) == before)
        #expect(try Files.names(in: #require(directory).path) == ["main.sqlite"])
    }

    @Test func refusesAnEmptyDatabaseThatAnotherProgramHasMarked() throws {
        try Inspector(path).execute("PRAGMA application_id = 7")
        try expectInvalid(path, "is a database of another program")
    }

    @Test func refusesALaterSchema() throws {
        _ = try PluginBackend(path: path)
        try Inspector(path).execute("PRAGMA user_version = 5")
        try expectInvalid(path, "has schema version 5, and this plugin knows 4 at most")
    }

    @Test func takesAnEmptyFile() throws {
        try Files.write("", to: path)
        let backend = try PluginBackend(path: path)
        _ = try backend.write([.put("a", "1", in: backend.open("clients"))])
    }

    // MARK: What may pass

    private func expectUnavailable(_ body: () throws -> Void) throws {
        let failure = try #require(try failure(of: body))
        #expect(failure.status == CRUDD_UNAVAILABLE, "\(failure.message)")
        #expect(failure.pointer == "")
    }

    @Test func isUnavailableWhereItMayNotWrite() throws {
        do {
            let backend = try PluginBackend(path: path)
            _ = try backend.write([.put("a", "1", in: backend.open("clients"))])
        }
        let directory = try #require(directory).path
        try Files.setMode(0o444, of: path)
        try Files.setMode(0o555, of: directory)
        defer { try? Files.setMode(0o755, of: directory) }
        // Loaded before: nobody may be kept from the directory of the build.
        let plugin = try ExportedPlugin("sqlite")
        try asNobody {
            for file in [try path, "\(directory)/other.sqlite"] {
                try expectUnavailable { _ = try PluginBackend(plugin, options: #"{"path": "\#(file)"}"#) }
            }
        }
        #expect(!Files.exists("\(directory)/other.sqlite"))
    }

    @Test func isUnavailableWhileAnotherProcessKeepsTheFile() throws {
        _ = try PluginBackend(path: path)
        do {
            let inspector = try Inspector(path)
            try inspector.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE x (y)")
            try expectUnavailable { _ = try PluginBackend(path: path) }
        }
        _ = try PluginBackend(path: path)
    }

    /// Runs `body` with this thread's rights to files taken from it, which root would have everywhere.
    private func asNobody(_ body: () throws -> Void) throws {
        let symbol = try #require(dlsym(nil, "setfsuid"))
        // setfsuid(2), which Swift's Glibc module leaves out.
        let setfsuid = unsafe unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
        if geteuid() == 0 { _ = setfsuid(65534) }
        defer { _ = setfsuid(geteuid()) }
        try body()
    }
}
