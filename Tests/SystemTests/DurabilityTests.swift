import CRUDTestSupport
import Testing

/// What was acknowledged is there, whatever happens.
@Suite struct DurabilityTests {
    private static let sqlite = "plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}"
    private static let log = "plugin: memory, options: {log: $DIRECTORY/log}"
    private static let postgresql = "plugin: postgresql, options: \(PostgreSQLServer.options("main"))"

    @Test(arguments: [(sqlite, 1, 30), (sqlite, 4, 20), (log, 1, 30), (log, 4, 20), (postgresql, 2, 10)])
    func acknowledgedWritesSurviveKills(backend: String, loops: Int, kills: Int) throws {
        let installation = try Installation(Configuration(backends: "main: {\(backend)}", loops: loops))
        let load = CrashLoad(lanes: 4, seed: 3)
        var random = SeededGenerator(seed: 7)
        for _ in 0..<kills {
            let daemon = try Daemon(on: installation)
            try load.check(on: daemon)
            try load.writeUntilKilled(on: daemon, acknowledgements: Int(random.next() % 1500))
        }
        let daemon = try Daemon(on: installation)
        try load.check(on: daemon)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func everythingSurvivesAnOrderlyRestart() throws {
        var daemon = try Daemon()
        let connection = try daemon.connect()
        let writes = try connection.pipeline(
            (0..<500).map { ("record.create", Connection.params("c", "\($0)", item: "\($0)")) })
        let revisions = writes.map { $0.result?["revision"]?.string }
        try daemon.stop()
        daemon = try daemon.restarted()
        let reads = try daemon.connect().pipeline((0..<500).map { ("record.read", Connection.params("c", "\($0)")) })
        for number in 0..<500 {
            #expect(reads[number].result?["item"]?.integer == number)
            #expect(reads[number].result?["revision"]?.string == revisions[number])
        }
    }
}
