import CRUDTestSupport
import Testing

/// Quotas beside what else changes the collections of a user: moves, imports and the loss of the catalog.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as another user")) struct QuotaChangeTests {
    private static let owner = Peer(user: 65534, group: 65534)
    private static let sample = #"crudd_user_records{uid="65534"}"#

    private static func configuration(_ limits: String, _ rule: String = "", more: String? = nil) -> Configuration {
        Configuration(
            socket: #"mode: "0666""#,
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                """,
            collections: "\(rule)\n\"*\": {backend: main}",
            access: "- {users: [65534], allow: [read, write], limits: \(limits)}", limits: more)
    }

    private static func isRefused(_ reply: Reply, _ limit: String = "records") -> Bool {
        reply.error?.name == "limit_exceeded" && reply.error?.details?["limit"]?.string == limit
    }

    /// Creates records until one is refused, and returns how many there are then, besides `count`.
    private static func fill(_ connection: Connection, from count: Int) throws -> Int {
        let deadline = Deadline()
        var next = count
        while !deadline.hasPassed {
            let reply = try connection.create("c", "\(next)", "1")
            if isRefused(reply) { return next }
            guard reply.result != nil else { throw Failure("create: \(reply)") }
            next += 1
        }
        throw Failure("nothing is refused")
    }

    /// The copies of a move count once, its originals afterwards not at all, and no record can be created in addition
    /// while it is not known yet what the new place has.
    @Test func aMoveNeitherChargesNorFreesItsOwner() throws {
        let daemon = try Daemon(Self.configuration("{records: 100}"))
        let admin = try daemon.connect()
        let owner = try daemon.connect(as: Self.owner)
        for id in 0..<60 { #expect(try owner.create("c", "\(id)", "1").result != nil) }
        // 120 with the copies.
        try admin.awaitMetric(Self.sample, 60)
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/other.sqlite")
        try daemon.installation.configure(Self.configuration("{records: 100}", "c: {backend: other}"))
        #expect(try admin.reloadMoving() == ["c"])
        try admin.awaitMoves { $0.first?["phase"]?.string == "suspended" }
        #expect(try owner.create("c", "60", "1").result != nil)
        try admin.awaitMetric(Self.sample, 61)
        try lock.end()
        try admin.awaitMoves()
        #expect(try admin.describe()["backend"]?.string == "other")
        #expect(try owner.create("c", "61", "1").result != nil)
        try admin.awaitMetric(Self.sample, 62)

        // Back, at the quota.
        let count = try Self.fill(owner, from: 62)
        #expect(count >= 100)
        try admin.awaitMetric(Self.sample, count)
        #expect(try admin.dropOriginals() == true)
        try daemon.installation.configure(Self.configuration("{records: 100}", "c: {backend: main}"))
        #expect(try admin.reloadMoving() == ["c"])
        var isMoving = true
        while isMoving {
            isMoving = try !admin.moves().isEmpty
            #expect(Self.isRefused(try owner.create("c", "more", "1")))
            #expect(try owner.update("c", "0", "2").result != nil)
        }
        #expect(try admin.describe()["backend"]?.string == "main")
        #expect(Self.isRefused(try owner.create("c", "more", "1")))
        #expect(Self.isRefused(try owner.create("d", "more", "1")))
        // Deletions are those of the new place.
        for id in 50..<count { #expect(try owner.delete("c", "\(id)").result != nil) }
        try admin.awaitMetric(Self.sample, 50)
        #expect(try owner.create("c", "more", "1").result != nil)
        try admin.awaitMetric(Self.sample, 51)
    }

    /// With the catalog the owners are lost: what users had belongs to no user then. It counts for no user, has no
    /// quota, and a user whose write finds it before the daemon has does not become its owner.
    @Test(arguments: [false, true])
    func afterTheLossOfTheCatalogNobodyOwnsWhatIsFound(isFoundByAWrite: Bool) throws {
        let first = try Daemon(Self.configuration("{collections: 2, records: 10}"))
        let former = try first.connect(as: Self.owner)
        for name in ["c", "d"] { #expect(try former.create(name, "0", "1").result != nil) }
        #expect(Self.isRefused(try former.create("e", "0", "1"), "collections"))
        let count = try Self.fill(former, from: 1)
        #expect(try first.stop() == .exited(0))
        Files.remove("\(first.installation.path)/state/collections.jsonl")

        let database = "\(first.installation.path)/main.sqlite"
        let lock = isFoundByAWrite ? try SQLiteLock(of: database, isExclusive: true) : nil
        let daemon = try first.restarted()
        let owner = try daemon.connect(as: Self.owner)
        let admin = try daemon.connect()
        try owner.sendFrame(Connection.request("record.create", Connection.params("c", "new", item: "1"), id: "0"))
        try lock?.end()
        var reply = try owner.receive()
        let deadline = Deadline()
        while reply.error?.name == "unavailable", !deadline.hasPassed {
            reply = try owner.create("c", "new", "1")
        }
        #expect(reply.result != nil, "\(reply)")
        for id in 0..<20 { #expect(try owner.upsert("c", "\(count + id)", "1").result != nil) }
        for name in ["e", "f"] { #expect(try owner.create(name, "0", "1").result != nil) }
        #expect(Self.isRefused(try owner.create("g", "0", "1"), "collections"))
        try admin.awaitMetric(Self.sample, 2)
        #expect(try admin.metrics()[#"crudd_user_collections{uid="65534"}"#] == 2)
        // The drop of what no user owns makes no room; then it is the user's who creates it.
        for name in ["c", "e"] {
            #expect(try admin.call("collection.drop", #"{"collection":"\#(name)"}"#).result != nil)
            let reply = try owner.create("c", "0", "1")
            #expect(name == "c" ? Self.isRefused(reply, "collections") : reply.result != nil, "\(reply)")
        }
        for id in 1..<3 { #expect(try owner.create("c", "\(id)", "1").result != nil) }
        try admin.awaitMetric(Self.sample, 4)
    }

    private static func importing(_ rows: Int, into daemon: Daemon, _ options: String...) throws -> Command.Outcome {
        let table = "id,n\n" + (0..<rows).map { "\($0),\($0)\n" }.joined()
        return try Command.run(
            owner.command.path,
            owner.command.arguments + [BuildProducts.path(of: "crudctl"), "import", "c", "--id", "id"] + options,
            environment: ["CRUDD_SOCKET": daemon.socketPath], input: table)
    }

    /// The quota is measured each second, and the import takes longer: of the rows there are then the first ones, in
    /// whole batches, as many as the message says.
    @Test func anImportEndsAtItsQuotaWithWholeBatches() throws {
        let daemon = try Daemon(Self.configuration("{records: 100}", more: "batch: 2"))
        let admin = try daemon.connect()
        let run = try Self.importing(100_000, into: daemon)
        let count = try #require(try admin.describe()["count"]?.integer)
        #expect(run.status == .exited(65) && run.output.isEmpty, "\(run.status)")
        #expect(count >= 100 && count < 100_000 && count.isMultiple(of: 2), "\(count)")
        // The header is row 1. Either row of the batch of two may be the first one after the measurement.
        #expect(
            run.errors.hasPrefix("crudctl: limit_exceeded: row \(count + 2): ")
                || run.errors.hasPrefix("crudctl: limit_exceeded: row \(count + 3): "), "\(count): \(run.errors)")
        #expect(
            run.errors.contains("; \(count) of 100000 records were written; import the table again with --upsert"),
            "\(run.errors)")
        #expect(try admin.exists("c", "\(count - 1)") == true && admin.exists("c", "\(count)") == false)
        // Which, when there is room, is what completes it.
        try daemon.installation.configure(Self.configuration("{}"))
        #expect(try admin.reload().contains("access: changed"))
        let again = try Self.importing(count + 10, into: daemon, "--upsert")
        #expect(again.status == .exited(0), "\(again.errors)")
        #expect(try admin.describe()["count"]?.integer == count + 10)
    }

    /// A rate is one of requests, of which each row of a batch is one.
    @Test func anImportBeyondItsRateEndsAfterTheBatchThatReachedIt() throws {
        let daemon = try Daemon(Self.configuration("{requests_per_second: 50}", more: "batch: 1000"))
        let admin = try daemon.connect()
        let run = try Self.importing(2500, into: daemon)
        #expect(run.status != .exited(0) && run.errors.contains("limit_exceeded: rows 1002 to 2001: "), "\(run.errors)")
        #expect(run.errors.contains("; 1000 of 2500 records were written; import the table again with --upsert"))
        #expect(try admin.describe()["count"]?.integer == 1000)
    }
}
