import CRUDTestSupport
import Glibc
import Testing

/// Kills of the daemon and of backends' processes while clients write records that expire: what was acknowledged is
/// there until its instant and not afterwards, and what has expired leaves the storage.
@Suite struct ExpiryKillTests {
    private static let backends = [
        "plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}",
        "plugin: filesystem, options: {directory: $DIRECTORY/files}",
        "plugin: userdefaults, options: {suite: com.example.test}",
        "plugin: memory, options: {log: $DIRECTORY/log}",
        "plugin: postgresql, options: \(PostgreSQLServer.options("main"))",
        "command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/main.db}",
    ]

    @Test(arguments: backends)
    func theDaemonIsKilled(backend: String) throws {
        let installation = try Installation(Configuration(backends: "main: {\(backend)}"))
        let load = ExpiryLoad(seed: 21)
        for writes in [200, 350] {
            let daemon = try Daemon(on: installation)
            try load.write(on: daemon, upTo: writes)
            try daemon.kill()
            load.takeLastReplies()
        }
        let daemon = try Daemon(on: installation)
        try load.check(on: daemon)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: backends.dropLast().map { "isolation: process, \($0)" } + backends.suffix(1))
    func theBackendsProcessIsKilled(backend: String) throws {
        let daemon = try Daemon(Configuration(backends: "main: {\(backend)}"))
        let administrator = try daemon.connect()
        let load = ExpiryLoad(seed: 22)
        for writes in [200, 350] {
            let status = try ChildDaemon.awaitReady("main", notWith: nil, administrator)
            try load.write(on: daemon, upTo: writes)
            kill(try #require(status.pid), SIGKILL)
            try ChildDaemon.awaitReady("main", notWith: status.pid, administrator)
            load.takeLastReplies()
        }
        try load.check(on: daemon)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}

/// Connections that create records, of which some expire soon and some later, and what they were promised.
private final class ExpiryLoad {
    private struct Record {
        /// In milliseconds; 0: it does not expire.
        let ttl: Int
        let sent: Int
        /// When the acknowledgement came; nil: it has not come.
        var acknowledged: Int?
    }

    private var lanes: [Connection] = []
    private var records: [Record] = []
    private var acknowledgements = 0
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// Writes until so many writes in all have been acknowledged, and sends the next ones.
    func write(on daemon: Daemon, upTo count: Int) throws {
        lanes = try (0..<3).map { _ in try daemon.connect() }
        let deadline = Deadline()
        for lane in lanes { try send(16, on: lane) }
        while acknowledgements < count {
            try #require(!deadline.hasPassed, "writes are not acknowledged")
            let events = try Descriptor.wait(for: try lanes.map { (try $0.pollDescriptor, POLLIN) }, until: deadline)
            for (lane, event) in zip(lanes, events) where event != 0 {
                try send(takeIn(lane) { #expect($0.error == nil, "\($0)") }, on: lane)
            }
        }
    }

    /// What had been answered by the time of the kill counts; the rest may or may not have been applied.
    func takeLastReplies() {
        for lane in lanes { _ = try? takeIn(lane) { _ in } }
        lanes = []
    }

    private func send(_ count: Int, on lane: Connection) throws {
        for _ in 0..<count {
            let ttl = [0, 150, 400, 100_000][Int(random.next() % 4)]
            let more = ttl == 0 ? [:] : ["ttl": "\(ttl)e-3"]
            let params = Connection.params("c", "\(records.count)", item: "\(records.count)", more: more)
            let request = Connection.request("record.create", params, id: "\(records.count)")
            records.append(Record(ttl: ttl, sent: ExpiryTests.now()))
            try lane.sendFrame(request)
        }
    }

    private func takeIn(_ lane: Connection, _ check: (Reply) -> Void) throws -> Int {
        try lane.takeIn()
        var count = 0
        while let frame = try lane.bufferedFrame() {
            let reply = try Reply(JSON(parsing: frame))
            check(reply)
            count += 1
            guard let number = reply.id.integer, reply.error == nil else { continue }
            records[number].acknowledged = ExpiryTests.now()
            acknowledgements += 1
        }
        return count
    }

    /// Compares every record with what was promised, until those that expire soon are gone.
    func check(on daemon: Daemon) throws {
        let connection = try daemon.connect()
        let deadline = Deadline()
        while try checkOnce(connection) > 0 { try #require(!deadline.hasPassed, "expired records are there") }
        // Not only hidden: a change feed of the storage or a dump would show them.
        while try stored(by: daemon) != nil, try stored(by: daemon) != count(connection) {
            try #require(!deadline.hasPassed, "expired records are in the storage")
        }
    }

    /// Returns how many records are there that were to expire soon.
    private func checkOnce(_ connection: Connection) throws -> Int {
        var waiting = 0
        for first in stride(from: 0, to: records.count, by: 100) {
            let numbers = first..<min(first + 100, records.count)
            let begin = ExpiryTests.now()
            let reply = try connection.readMany("c", numbers.map(String.init))
            let end = ExpiryTests.now()
            let found = try #require(reply.result?["records"]?.elements, "\(reply)")
            let byID = Dictionary(uniqueKeysWithValues: found.map { ($0["id"]?.string ?? "", $0) })
            for number in numbers {
                let (record, there) = (records[number], byID["\(number)"])
                if there != nil, record.ttl > 0, record.ttl < 1000 { waiting += 1 }
                guard let acknowledged = record.acknowledged else { continue }
                if record.ttl == 0 || end < record.sent + record.ttl { #expect(there != nil, "\(number) is lost") }
                if record.ttl > 0, begin >= acknowledged + record.ttl { #expect(there == nil, "\(number) is there") }
                guard let there else { continue }
                #expect(there["item"]?.integer == number)
                let expiry = there["expiresAt"]?.integer
                #expect((expiry == nil) == (record.ttl == 0))
                let promised = record.sent + record.ttl...acknowledged + record.ttl
                if let expiry { #expect(promised.contains(expiry), "\(number)") }
            }
        }
        return waiting
    }

    private func count(_ connection: Connection) throws -> Int? {
        try connection.call("record.count", #"{"collection":"c"}"#).result?["count"]?.integer
    }

    /// How many records the storage has; nil where it is not known how to count them.
    private func stored(by daemon: Daemon) throws -> Int? {
        let directory = daemon.installation.path
        if Files.exists("\(directory)/main.sqlite") {
            return try ExpiryRemovalTests.rows(of: "c", in: "\(directory)/main.sqlite")
        }
        guard Files.exists("\(directory)/files") else { return nil }
        return try Files.names(in: "\(directory)/files/c").count { $0.hasPrefix("item_") }
    }
}
