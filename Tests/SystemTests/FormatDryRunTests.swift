import CRUDTestSupport
import Testing

/// `daemon.reload` with `dryRun` names the records that another format cannot hold: those for which the move then
/// waits.
@Suite struct FormatDryRunTests {
    private static func configuration(_ format: String) -> Configuration {
        Configuration(collections: "a: {backend: main, format: \(format)}\n\"*\": {backend: main}")
    }

    private static func moving(_ connection: Connection) throws -> JSON? {
        try #require(try connection.call("daemon.reload", #"{"dryRun":true,"move":true}"#).result)["moving"]
    }

    @Test func namesTheRecordsForWhichTheMoveThenWaits() throws {
        let daemon = try Daemon(Self.configuration("json"))
        let connection = try daemon.connect()
        for id in 0..<12 { #expect(try connection.create("a", "bad \(10 + id)", #"{"x":"\u0001"}"#).result != nil) }
        for id in 0..<3000 { #expect(try connection.create("a", "good \(id)", #"{"x":1}"#).result != nil) }
        try daemon.installation.configure(Self.configuration("xml"))
        let catalog = try Files.read("\(daemon.installation.path)/state/collections.jsonl")
        let moving = try #require(try Self.moving(connection)?.elements?.first)
        let format = try #require(moving["format"])
        #expect(moving["records"]?.text == "3012" && format["checked"]?.text == "3012")
        #expect(format["complete"]?.text == "true" && format["refused"]?.text == "12")
        let first = try #require(format["first"]?.elements)
        #expect(first.compactMap { $0["id"]?.string } == (10..<20).map { "bad \($0)" })
        #expect(first.allSatisfy { $0["reason"]?.string?.isEmpty == false })
        let crudctl = try Command.run(
            BuildProducts.path(of: "crudctl"), ["reload", "--dry-run", "--move", "-o", "table"],
            environment: ["CRUDD_SOCKET": daemon.socketPath])
        let lines = crudctl.output.split(separator: "\n")
        #expect(lines.contains("  \"a\": 12 of 3012 records"), "\(crudctl)")
        #expect(lines.contains { $0.hasPrefix("    \"bad 10\": ") })
        #expect(try Files.read("\(daemon.installation.path)/state/collections.jsonl") == catalog, "nothing is touched")

        // The move waits for the first one, and ends when all that were counted are gone.
        #expect(try connection.call("daemon.reload", #"{"move":true}"#).result != nil)
        let deadline = Deadline()
        func move() throws -> JSON? {
            try connection.call("collection.describe", #"{"collection":"a"}"#).result?["move"]
        }
        while try move()?["phase"]?.string != "failed" { try #require(!deadline.hasPassed) }
        #expect(try move()?.text.contains("bad 10") == true)
        for id in 0..<12 { #expect(try connection.delete("a", "bad \(10 + id)").result != nil) }
        #expect(try connection.call("daemon.reload", #"{"move":true}"#).result != nil)
        while try move() != nil { try #require(!deadline.hasPassed) }
        let description = try #require(try connection.call("collection.describe", #"{"collection":"a"}"#).result)
        #expect(description["format"]?.string == "xml" && description["count"]?.text == "3000")
        #expect(try Self.moving(connection)?.text == "[]")
    }

    /// Where all fit the dry run says that, too, and crudctl has no section for it.
    @Test func saysThatAllFit() throws {
        let daemon = try Daemon(Self.configuration("json"))
        let connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("a", "\(id)", "1").result != nil) }
        try daemon.installation.configure(Self.configuration("plist"))
        let format = try Self.moving(connection)?.elements?.first?["format"]
        #expect(format?.text == #"{"checked":3,"complete":true,"refused":0,"first":[]}"#)
        let crudctl = try Command.run(
            BuildProducts.path(of: "crudctl"), ["reload", "--dry-run", "--move", "-o", "table"],
            environment: ["CRUDD_SOCKET": daemon.socketPath])
        #expect(!crudctl.output.contains("cannot hold"))
    }
}
