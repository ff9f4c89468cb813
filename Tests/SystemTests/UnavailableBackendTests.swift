import CRUDTestSupport
import Glibc
import Testing

/// A backend that is not available now is no reason for the daemon not to serve the others.
@Suite struct UnavailableBackendTests {
    private static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
            """,
        collections: "other: {backend: other}\n\"*\": {backend: main}")

    @Test func aLockedDatabaseIsDownAndComesBack() throws {
        var daemon = try Daemon(Self.configuration)
        var connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.create("other", "a", "2").result != nil)
        try daemon.stop()

        let lock = try lockExclusively("\(daemon.installation.path)/main.sqlite")
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        #expect(try state(of: "main", connection) == "down")
        #expect(try state(of: "other", connection) != "down")
        let replies = try [
            connection.read("c", "a"), connection.create("c", "b", "1"), connection.update("c", "a", "1"),
            connection.upsert("c", "a", "1"), connection.delete("c", "a"), connection.readMany("c", ["a"]),
            connection.call("record.exists", Connection.params("c", "a")),
        ]
        for reply in replies {
            #expect(reply.error?.code == -32008)
            #expect(reply.error?.isRetryable == true)
        }
        #expect(try connection.item("other", "a") == "2")
        #expect(try connection.upsert("other", "a", "3").result != nil)

        unlock(lock)
        let deadline = Deadline(.seconds(60))
        while try connection.read("c", "a").error?.name == "unavailable" {
            try #require(!deadline.hasPassed, "the backend does not come back")
        }
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.exists("c", "b") == false)
        #expect(try connection.create("c", "b", "1").result != nil)
        #expect(try state(of: "main", connection) != "down")
        #expect(try daemon.stop() == .exited(0))
    }

    /// What the catalog does not know of its collections is known once it is back, without being used.
    @Test func whatItHasIsFoundOnceItIsBack() throws {
        let former = try Daemon(Self.configuration)
        #expect(try former.connect().create("c", "a", "1").result != nil)
        try former.stop()
        let path = former.installation.path
        Files.remove("\(path)/state/collections.jsonl")
        let lock = try lockExclusively("\(path)/main.sqlite")
        let daemon = try Daemon(on: former.installation)
        let connection = try daemon.connect()
        let count = { try connection.call("collection.list").result?["collections"]?.elements?.count }
        #expect(try count() == 1, "the one that a rule names")
        unlock(lock)
        let deadline = Deadline(.seconds(60))
        while try count() != 2 { try #require(!deadline.hasPassed, "the collection is not found") }
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aBusyDatabaseKeepsNobodyWaitingForLong() throws {
        let daemon = try Daemon(Configuration(limits: "request_timeout: 5s"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)

        // The byte of the WAL index that a writer locks (https://sqlite.org/walformat.html, section 2.3).
        let index = try open(file: "\(daemon.installation.path)/main.sqlite-shm")
        let deadline = Deadline()
        while !setLock(index, Int16(F_WRLCK), at: 120, count: 1) { try #require(!deadline.hasPassed) }
        let start = ContinuousClock.now
        let error = try #require(try connection.create("c", "b", "1").error)
        #expect(start.duration(to: .now) < .seconds(60))
        #expect(["unavailable", "outcome_unknown"].contains(error.name))
        #expect(try daemon.connect().item("c", "a") == "1", "reading needs no lock")

        #expect(setLock(index, Int16(F_UNLCK), at: 120, count: 1))
        while try connection.upsert("c", "c", "1").result == nil { try #require(!deadline.hasPassed) }
        if error.name == "unavailable" { #expect(try connection.exists("c", "b") == false) }
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func theDaemonStopsWellWhileABackendIsDown() throws {
        var daemon = try Daemon(Self.configuration)
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        try daemon.stop()
        let lock = try lockExclusively("\(daemon.installation.path)/main.sqlite")
        daemon = try daemon.restarted()
        #expect(try daemon.stop() == .exited(0))
        unlock(lock)
    }

    @Test func aFileThatIsNoDatabaseIsNeverWrittenTo() throws {
        let installation = try Installation(Self.configuration)
        let content = Array(String(repeating: "These are the accounts of 1997.\n", count: 1000).utf8)
        try Files.write(content, to: "\(installation.path)/main.sqlite")
        // Whether it refuses to start or serves the other backend, the file is not its own.
        if let daemon = try? Daemon(on: installation) {
            let connection = try daemon.connect()
            #expect(try connection.create("c", "a", "1").error != nil)
            #expect(try connection.create("other", "a", "1").result != nil)
            #expect(try daemon.stop() == .exited(0))
        } else {
            #expect(try installation.startInVain().status == .exited(78))
        }
        #expect(try Files.read("\(installation.path)/main.sqlite") == content)
    }

    private func state(of backend: String, _ connection: Connection) throws -> String? {
        let backends = try connection.call("backend.list").result?["backends"]?.elements
        return backends?.first { $0["name"]?.string == backend }?["state"]?.string
    }

    /// Takes the bytes that SQLite locks before it touches a database (PENDING, RESERVED and SHARED of
    /// https://sqlite.org/lockingv3.html), as a program that has it exclusively does.
    private func lockExclusively(_ path: String) throws -> Descriptor {
        let file = try open(file: path)
        guard setLock(file, Int16(F_WRLCK), at: 0x4000_0000, count: 512) else { throw Failure.system("fcntl F_SETLK") }
        return file
    }

    private func unlock(_ file: Descriptor) {
        #expect(setLock(file, Int16(F_UNLCK), at: 0x4000_0000, count: 512))
    }

    private func open(file path: String) throws -> Descriptor {
        let number = Glibc.open(path, O_RDWR | O_CLOEXEC)
        guard number >= 0 else { throw Failure.system("open \(path)") }
        return Descriptor(owning: number)
    }

    private func setLock(_ file: Descriptor, _ type: Int16, at start: Int, count: Int) -> Bool {
        var lock = flock(l_type: type, l_whence: Int16(SEEK_SET), l_start: start, l_len: count, l_pid: 0)
        return fcntl(file.number, F_SETLK, &lock) == 0
    }
}
