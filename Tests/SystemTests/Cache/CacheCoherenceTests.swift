import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization
import Testing

/// Nobody is ever shown a record as it was before what has been acknowledged, or what the session has seen.
@Suite struct CacheCoherenceTests {
    /// How long the records are hammered; a minute, say, by the environment.
    private static var duration: Duration {
        .seconds(getenv("CRUDD_HOT_RECORD_SECONDS").flatMap { Int(String(cString: $0)) } ?? 3)
    }

    private static func configuration(cacheBytes: String) -> String {
        """
        state_directory: $DIRECTORY/state
        socket: {path: $DIRECTORY/crudd.sock}
        plugins: {directories: [$DIRECTORY/plugins]}
        backends:
          inline: {plugin: sqlite, options: {path: $DIRECTORY/inline.sqlite, synchronous: "off"}}
          child: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite, synchronous: "off"}}
        collections:
          json: {backend: inline}
          plist: {backend: inline, format: plist}
          child: {backend: child}
        cache: {bytes: \(cacheBytes)}
        loops: 3
        """
    }

    @Test func hotRecordsAreNeverShownAsTheyWere() throws {
        let installation = try Installation(text: Self.configuration(cacheBytes: "64MiB"))
        let daemon = try Daemon(on: installation)
        let records = ["json", "plist", "child"].map(HotRecord.init)
        let deadline = Deadline(Self.duration)
        let errors = Mutex<[String]>([])
        let work = Mutex((reads: 0, writes: 0))
        func start(_ name: String, _ body: @escaping @Sendable () throws -> Void) throws -> Thread {
            try Thread(named: name) {
                do { try body() } catch { errors.withLock { $0.append("\(name): \(error)") } }
            }
        }
        var threads = try (0..<8).map { number in
            try start("session \(number)") {
                var session = HotRecordSession(try daemon.connect(), records, seed: UInt64(number))
                try session.run(until: deadline)
                work.withLock { $0 = ($0.reads + session.reads, $0.writes + session.writes) }
            }
        }
        for (record, file) in [(records[0], "inline"), (records[2], "child")] {
            // The table is there from the first write on.
            _ = try daemon.connect().upsert(record.collection, "other", "{}")
            let writer = try ForeignWriter(
                of: "\(installation.path)/\(file).sqlite", table: record.collection, id: HotRecord.id)
            threads.append(
                try start("foreign writer of \(file)") {
                    while !deadline.hasPassed {
                        try record.write(deletes: false) { try writer.write($0) ? .acknowledged : .refused }
                        _ = poll(nil, 0, 5)
                    }
                })
        }
        threads.append(try start("administrator") { try Self.disturb(daemon, until: deadline) })
        for thread in threads { thread.join() }
        #expect(errors.withLock(\.self) == [])
        let (reads, writes) = work.withLock(\.self)
        #expect(reads > 500 && writes > 50, "\(reads) reads, \(writes) writes")
        let cache = try #require(try daemon.connect().call("daemon.status").result?["cache"])
        #expect(try #require(cache["hits"]?.integer) > 0, "\(cache.text)")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Kills the child and reloads, again and again.
    private static func disturb(_ daemon: Daemon, until deadline: Deadline) throws {
        let connection = try daemon.connect()
        var round = 0
        while !deadline.hasPassed {
            round += 1
            try daemon.installation.configure(text: configuration(cacheBytes: round % 2 == 0 ? "64MiB" : "32MiB"))
            _ = try connection.reload()
            if let pid = try ChildDaemon.status(of: "child", connection).pid { kill(pid, SIGKILL) }
            _ = poll(nil, 0, 300)
        }
    }
}
