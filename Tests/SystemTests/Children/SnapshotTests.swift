import CRUDTestSupport
import Glibc
import Testing

/// Snapshots are kept from one read to the next, in the daemon and in children; nobody must notice.
@Suite struct SnapshotTests {
    private static let isolations = ["inline", "process"]
    private static let collection = "c"

    /// Nothing waits for the disk, which has nothing to do with what anybody sees.
    private static func daemon(_ isolation: String) throws -> Daemon {
        let options = "{path: $DIRECTORY/main.sqlite, synchronous: off}"
        return try Daemon(
            Configuration(backends: "main: {plugin: sqlite, isolation: \(isolation), options: \(options)}"))
    }

    /// A record's number as each of several connections is told it, in its own way.
    private struct Readers {
        let connections: [Connection]

        init(_ daemon: Daemon) throws {
            connections = try (0..<3).map { _ in try daemon.connect() }
        }

        /// Asks one connection after the other, the last for a query.
        func numbers(_ take: (Int) throws -> Void) throws {
            for connection in connections.dropLast() {
                try take(try #require(try connection.read(SnapshotTests.collection, "n").result?["item"]?.integer))
            }
            guard let reply = try connections.last?.query(SnapshotTests.collection, #"{"prefix":"n"}"#) else { return }
            try take(try #require(reply.result?["records"]?.elements?.first?["item"]?.integer, "\(reply)"))
        }
    }

    /// Once anybody has seen a write, nobody sees the state before it, whether or not it has its reply.
    @Test(arguments: isolations)
    func whatOneHasSeenAllSee(isolation: String) throws {
        let daemon = try Self.daemon(isolation)
        let writer = try daemon.connect()
        let readers = try Readers(daemon)
        #expect(try writer.create(Self.collection, "n", "0").result != nil)
        var known = 0
        for number in 1...500 {
            try writer.sendFrame(
                Connection.request("record.update", Connection.params(Self.collection, "n", item: "\(number)"), id: "1")
            )
            repeat {
                try readers.numbers { seen in
                    try #require(known...number ~= seen, "a write that was seen is gone")
                    known = seen
                }
            } while try !writer.hasSomethingToRead()
            #expect(try writer.receive().result != nil)
            known = number
            try readers.numbers { try #require($0 == number, "a write that has its reply is not there") }
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Nobody tells the daemon of what others write: it is seen when snapshots are released, a tenth of a second after
    /// they were taken, though there is always a read in flight.
    @Test(arguments: isolations)
    func whatOthersWriteIsSeenSoon(isolation: String) throws {
        let daemon = try Self.daemon(isolation)
        let readers = try Readers(daemon)
        // A busy machine may hold up the daemon: in one of the rounds it does not.
        var delay: String?
        for round in 0..<10 where round == 0 || delay != nil { delay = try self.delay(of: readers, daemon) }
        #expect(delay == nil)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// - Returns: how late writes were seen, if that was too late.
    private func delay(of readers: Readers, _ daemon: Daemon) throws -> String? {
        #expect(try readers.connections[0].upsert(Self.collection, "n", "0").result != nil)
        let writer = try self.writer(
            for: 2,
            """
            committed = []
            while time.monotonic() < end:
                database.execute(f'UPDATE "{sys.argv[2]}" SET item = ?', [str(len(committed) + 1)])
                committed.append(str(time.monotonic_ns()))
            open(sys.argv[1] + ".times", "w").write("\\n".join(committed))
            """, daemon)
        var reads: [(number: Int, time: Int)] = []
        while try writer.isRunning {
            var now = Self.monotonicTime
            try readers.numbers { number in
                reads.append((number, now))
                now = Self.monotonicTime
            }
        }
        #expect(try writer.waitForExit() == .exited(0))
        let times = try Files.read("\(daemon.installation.path)/main.sqlite.times")
        let committed = String(decoding: times, as: UTF8.self).split(separator: "\n").compactMap { Int($0) }
        // Since when the next number had been there when a read began.
        let ages = reads.map { number, time in
            Duration.nanoseconds(committed.indices.contains(number) ? max(0, time - committed[number]) : 0)
        }
        // The daemon may have been held up.
        let old = ages.count { $0 > .milliseconds(150) }
        let longest = ages.max() ?? .zero
        let areMany = ages.count > 100 && committed.count > 10
        if areMany, old <= ages.count / 20, longest < .seconds(1) { return nil }
        return "\(old) of \(ages.count) reads, \(longest) at most, of \(committed.count) writes"
    }

    /// A log can be truncated only while no snapshot needs it.
    @Test(arguments: isolations)
    func noSnapshotIsHeldWhileNobodyReads(isolation: String) throws {
        let daemon = try Self.daemon(isolation)
        let readers = try (0..<8).map { _ in try Readers(daemon) }
        #expect(try readers[0].connections[0].create(Self.collection, "n", "1").result != nil)
        for _ in 0..<20 {
            for reader in readers { try reader.numbers { #expect($0 == 1) } }
        }
        let writer = try self.writer(
            for: 60,
            """
            while database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > end: sys.exit("a snapshot is held")
            """, daemon)
        #expect(try writer.waitForExit() == .exited(0))
        let log = "\(daemon.installation.path)/main.sqlite-wal"
        #expect(Files.status(log)?.st_size == 0)
        for reader in readers { try reader.numbers { #expect($0 == 1) } }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Others

    /// A process that has the database open, for at most so many seconds.
    private func writer(for seconds: Int, _ program: String, _ daemon: Daemon) throws -> ChildProcess {
        let beginning = """
            import sqlite3, sys, time
            end = time.monotonic() + \(seconds)
            database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=1)
            database.execute("PRAGMA synchronous = OFF")

            """
        let file = "\(daemon.installation.path)/main.sqlite"
        return try ChildProcess(
            "/usr/bin/python3", ["-c", beginning + program, file, Self.collection], descriptors: [])
    }

    /// CLOCK_MONOTONIC, in nanoseconds.
    private static var monotonicTime: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
