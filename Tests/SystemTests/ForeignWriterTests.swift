import CRUDTestSupport
import Testing

/// Somebody else writes the same database, between a patch's read and its write as well.
@Suite struct ForeignWriterTests {
    private static let records = 32
    private static let writes = 3200

    @Test(arguments: ["inline", "sqlite"])
    func noPatchLosesWhatSomebodyElseHasWritten(backend: String) throws {
        let daemon = try ChildDaemon([backend]).daemon
        let connection = try daemon.connect()
        for id in 0..<Self.records { #expect(try connection.create(backend, "\(id)", #"{"theirs":0}"#).result != nil) }
        let program = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
            database.execute("PRAGMA synchronous = OFF")
            for write in range(int(sys.argv[3])):
                database.execute(
                    f'''UPDATE "{sys.argv[2]}" SET item = json_set(item, '$.theirs', item ->> 'theirs' + 1),
                    revision = lower(hex(randomblob(16))) WHERE id = ?''',
                    [str(write % int(sys.argv[4]))])
            """
        let file = "\(daemon.installation.path)/\(backend == "inline" ? "inline" : "child").sqlite"
        let writer = try ChildProcess(
            "/usr/bin/python3", ["-c", program, file, backend, "\(Self.writes)", "\(Self.records)"], descriptors: [])
        var ours = Array(repeating: 0, count: Self.records)
        var theirs = ours
        var round = 0
        let deadline = Deadline()
        while try writer.isRunning {
            try #require(!deadline.hasPassed)
            round += 1
            // All of them are read before the first is written.
            let patch = #"{"ours":\#(round)}"#
            let replies = try connection.pipeline(
                (0..<Self.records).map {
                    ("record.patch", Connection.params(backend, "\($0)", more: ["patch": patch]))
                })
            for (id, reply) in replies.enumerated() {
                // Where the database is theirs for too long, or the record changes again and again, nothing is applied.
                if reply.error?.name == "unavailable" { continue }
                let item = try #require(reply.result?["item"], "\(reply)")
                let seen = try #require(item["theirs"]?.integer)
                #expect(seen >= theirs[id])
                #expect(item["ours"]?.integer == round)
                (ours[id], theirs[id]) = (round, seen)
            }
        }
        #expect(try writer.waitForExit() == .exited(0))
        #expect(ours.allSatisfy { $0 > 0 })
        for id in 0..<Self.records {
            let item = try #require(try connection.read(backend, "\(id)").result?["item"])
            #expect(item["theirs"]?.integer == Self.writes / Self.records)
            #expect(item["ours"]?.integer == ours[id])
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
