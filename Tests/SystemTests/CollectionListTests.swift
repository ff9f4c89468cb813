import CRUDTestSupport
import Glibc
import Testing

/// `collection.list` of as many collections as there may be.
@Suite struct CollectionListTests {
    private static let count = 10_000

    private static func installation() throws -> Installation {
        let installation = try Installation(
            Configuration(backends: "main: {plugin: memory}", limits: "collections: 20000", loops: 1))
        let lines = (0..<count).map { #"{"name":"many \#($0)","backend":"main","format":"json"}"# + "\n" }
        try Files.write(lines.joined(), to: "\(installation.path)/state/collections.jsonl", mode: 0o600)
        return installation
    }

    private static func list(_ connection: Connection, times: Int = 1) throws -> Duration {
        let start = ContinuousClock.now
        let request = Connection.frame(Connection.request("collection.list", id: "1"))
        for _ in 0..<times {
            try connection.send(request)
            #expect(try connection.receiveFrame()?.count ?? 0 > count * 50)
        }
        return start.duration(to: .now)
    }

    /// It is made when it is first asked for, and when it would differ.
    @Test func aListIsMadeOnce() throws {
        let daemon = try Daemon(on: Self.installation())
        let connection = try daemon.connect()
        let once = try Self.list(connection)
        let often = try #require(try (0..<5).map { _ in try Self.list(connection, times: 40) }.min())
        #expect(often < once * 20, "\(once), \(often)")
        #expect(try connection.create("another", "a", "1").result != nil)
        let names = try connection.call("collection.list").result?["collections"]?.elements?
            .compactMap { $0["name"]?.string }
        #expect(names == (["another"] + (0..<Self.count).map { "many \($0)" }).sorted())
    }

    /// The daemon is writing down that there is another collection.
    @Test func aListDoesNotWaitForTheDisk() throws {
        let disk = try FaultyDisk()
        let daemon = try Daemon(on: Self.installation(), environment: disk.variables)
        let (writer, reader) = (try daemon.connect(), try daemon.connect())
        try disk.fail("stall", "collections.jsonl")
        try writer.sendFrame(Connection.request("record.create", Connection.params("new", "a", item: "1"), id: "1"))
        let deadline = Deadline()
        while disk.log.isEmpty { try #require(!deadline.hasPassed, "the catalog is not synced") }
        _ = try Self.list(reader)
        #expect(try reader.isUsable())
        try disk.heal()
        #expect(try writer.receive().result != nil)
    }
}
