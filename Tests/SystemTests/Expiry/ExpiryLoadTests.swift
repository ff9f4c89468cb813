import CRUDTestSupport
import Glibc
import Testing

/// Records that expire within the same second: others are served as before, the daemon does not grow, and they are soon
/// gone from the storage. `CRUDD_EXPIRING` says how many, and `CRUDD_PRODUCTS` names a release build, of which more is
/// expected.
@Suite(.serialized) struct ExpiryLoadTests {
    private static let count = MovePlaces.number("CRUDD_EXPIRING", default: 10_000)
    /// How many records do not expire.
    private static let others = 1000

    @Test(arguments: [("inline", false), ("inline", true), ("process", false)])
    func readsGoOnBesideTheirRemoval(isolation: String, changes: Bool) throws {
        let daemon = try Daemon(
            Configuration(
                backends: "main: {plugin: sqlite, isolation: \(isolation), options: {path: $DIRECTORY/main.sqlite}}",
                collections: "c: {backend: main, changes: \(changes)}\nother: {backend: main}", cache: "0B"))
        let connection = try daemon.connect()
        let instant = try Self.create(connection)
        let emptied = try Self.awaitEmptyTable("\(daemon.installation.path)/main.sqlite")
        let resident = try daemon.residentBytes
        let before = try Self.read(connection, daemon, instant) { ExpiryTests.now() >= instant - 50 }
        #expect(try emptied.isRunning)
        let deadline = Deadline(.milliseconds(instant + 60_000 - ExpiryTests.now()))
        let beside = try Self.read(connection, daemon, instant) { try deadline.hasPassed || !emptied.isRunning }
        #expect(try emptied.waitForExit(until: Deadline(.zero)) == .exited(0), "not gone after a minute")
        print(
            "\(Self.count) records, \(isolation), changes: \(changes): gone after \(ExpiryTests.now() - instant) ms,",
            "p99 of reads \(before.slow) before and \(beside.slow) (of \(beside.times.count)) beside it,",
            "grown by \((beside.resident - resident) >> 10) KiB")
        #expect(beside.resident - resident <= 32 << 20)
        if BuildProducts.areOptimized { #expect(beside.slow <= before.slow * 3) }
        #expect(try daemon.stop() == .exited(0))
    }

    /// Creates the records, and returns when they are to expire.
    private static func create(_ connection: Connection) throws -> Int {
        func create(_ collection: String, _ ids: Range<Int>, _ more: String) throws {
            let operations = ids.map {
                #"{"op":"create","collection":"\#(collection)","id":"\#($0)","item":{"number":\#($0)}\#(more)}"#
            }
            let reply = try connection.call("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
            try #require(reply.result != nil, "\(reply)")
        }
        let begin = ExpiryTests.now()
        try create("other", 0..<others, "")
        // Twice the time that it will take, and one second to measure reads.
        let time = (ExpiryTests.now() - begin) * 2 * count / others
        let instant = ExpiryTests.now() + time + 1000
        for first in stride(from: 0, to: count, by: 1000) {
            let rest = instant - ExpiryTests.now()
            try #require(rest > 0, "they expire before all are there")
            try create("c", first..<min(first + 1000, count), #","ttl":\#(rest)e-3"#)
        }
        return instant
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

    /// Reads records that stay, and records that expire, until a condition holds.
    private static func read(
        _ connection: Connection, _ daemon: Daemon, _ instant: Int, until isOver: () throws -> Bool
    ) throws -> Reads {
        var reads = Reads()
        var random = SeededGenerator(seed: 9)
        while try !isOver() {
            for _ in 0..<64 {
                let id = Int(random.next() % UInt64(others))
                let request = Connection.request("record.read", Connection.params("other", "\(id)"), id: "1")
                let begin = ContinuousClock.now
                try connection.sendFrame(request)
                let frame = try connection.receiveFrame()
                reads.times.append(begin.duration(to: .now))
                #expect(try Reply(JSON(parsing: frame ?? [])).result?["item"]?["number"]?.integer == id)
            }
            let begin = ExpiryTests.now()
            let isThere = try connection.exists("c", "\(random.next() % UInt64(count))") == true
            // All of them expire in the same second.
            if begin < instant { #expect(isThere || ExpiryTests.now() >= instant) }
            if begin >= instant + 1000 { #expect(!isThere, "\(begin - instant) ms") }
            reads.resident = max(reads.resident, try daemon.residentBytes)
        }
        return reads
    }
}
