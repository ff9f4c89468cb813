import CRUDTestSupport
import Glibc
import Testing

/// Records that expire at the same instant: others are served as before, the daemon does not grow, and they are soon
/// gone from the storage. `CRUDD_EXPIRING` says how many, and `CRUDD_PRODUCTS` names a release build, of which more is
/// expected.
@Suite(.serialized) struct ExpiryLoadTests {
    private static let count = MovePlaces.number("CRUDD_EXPIRING", default: 10_000)
    /// How many records do not expire.
    private static let others = 1000

    @Test(arguments: [("inline", false), ("inline", true), ("process", false)])
    func readsGoOnBesideTheirRemoval(isolation: String, changes: Bool) throws {
        let clock = try SetClock()
        let configuration = Configuration(
            backends: "main: {plugin: sqlite, isolation: \(isolation), options: {path: $DIRECTORY/main.sqlite}}",
            collections: "c: {backend: main, changes: \(changes)}\nother: {backend: main}", cache: "0B")
        let daemon = try Daemon(on: Installation(configuration), environment: clock.environment)
        let connection = try daemon.connect()
        try Self.create(Self.others, in: "other", connection)
        try Self.create(Self.count, in: "c", connection, #","ttl":3600"#)
        let emptied = try Self.awaitEmptyTable("\(daemon.installation.path)/main.sqlite")
        let resident = try daemon.residentBytes
        let second = Deadline(.seconds(1))
        let before = try Self.read(connection, daemon, areExpired: false) { second.hasPassed }
        #expect(try emptied.isRunning)
        try clock.set(forward: 7200)
        // A write has it noticed.
        #expect(try connection.upsert("other", "more", "1").result != nil)
        let begin = ContinuousClock.now
        let end = Deadline(.seconds(BuildProducts.areOptimized ? 60 : 300))
        let beside = try Self.read(connection, daemon, areExpired: true) { try end.hasPassed || !emptied.isRunning }
        #expect(try emptied.waitForExit(until: Deadline(.zero)) == .exited(0), "not gone in time")
        print(
            "\(Self.count) records, \(isolation), changes: \(changes): gone after \(begin.duration(to: .now)),",
            "p99 of reads \(before.slow) before and \(beside.slow) (of \(beside.times.count)) beside it,",
            "grown by \((beside.resident - resident) >> 10) KiB")
        #expect(beside.resident - resident <= 32 << 20)
        // Fewer are gone before a hundred reads; and no other program may keep the processors busy.
        if BuildProducts.areOptimized, Self.count >= 100_000 { #expect(beside.slow <= before.slow * 3) }
        #expect(try daemon.stop() == .exited(0))
    }

    private static func create(
        _ count: Int, in collection: String, _ connection: Connection, _ more: String = ""
    ) throws {
        for first in stride(from: 0, to: count, by: 1000) {
            let operations = (first..<min(first + 1000, count)).map {
                #"{"op":"create","collection":"\#(collection)","id":"\#($0)","item":{"number":\#($0)}\#(more)}"#
            }
            let reply = try connection.call("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
            try #require(reply.result != nil, "\(reply)")
        }
    }

    /// A process that ends when the collection's table is empty.
    private static func awaitEmptyTable(_ database: String) throws -> ChildProcess {
        let script = """
            import sqlite3, time
            connection = sqlite3.connect("file:\(database)?mode=ro", uri=True)
            while connection.execute("select 1 from c limit 1").fetchone(): time.sleep(0.1)
            """
        return try ChildProcess("python3", ["-c", script], descriptors: [])
    }

    private struct Reads {
        var times: [Duration] = []
        /// The most that the daemon took.
        var resident = 0
        /// Their 99th percentile.
        var slow: Duration { times.sorted()[times.count * 99 / 100] }
    }

    /// Reads records that stay, and records that expire, at least once and until a condition holds.
    private static func read(
        _ connection: Connection, _ daemon: Daemon, areExpired: Bool, until isOver: () throws -> Bool
    ) throws -> Reads {
        var reads = Reads()
        var random = SeededGenerator(seed: 9)
        repeat {
            for _ in 0..<64 {
                let id = Int(random.next() % UInt64(others))
                let request = Connection.request("record.read", Connection.params("other", "\(id)"), id: "1")
                let begin = ContinuousClock.now
                try connection.sendFrame(request)
                let frame = try connection.receiveFrame()
                reads.times.append(begin.duration(to: .now))
                #expect(try Reply(JSON(parsing: frame ?? [])).result?["item"]?["number"]?.integer == id)
            }
            #expect(try connection.exists("c", "\(random.next() % UInt64(count))") == !areExpired)
            reads.resident = max(reads.resident, try daemon.residentBytes)
        } while try !isOver()
        return reads
    }
}
