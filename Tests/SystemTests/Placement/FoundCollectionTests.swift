import CRUDTestSupport
import Glibc
import Testing

/// Collections that are in a storage and that the catalog does not know: listed, and protected from being orphaned,
/// before anybody uses them.
@Suite struct FoundCollectionTests {
    private static let names = (0..<300).map { "found \($0)" }

    private static func configuration(_ collections: String) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                files: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}
                """, collections: collections)
    }

    private static let rules = "\"f*\": {backend: main}\n\"g\": {backend: files}"

    /// An installation with collections, and without a catalog.
    private static func installation() throws -> Installation {
        let daemon = try Daemon(configuration(rules))
        let connection = try daemon.connect()
        for name in names + ["g"] { #expect(try connection.create(name, "a", "1").result != nil) }
        #expect(try daemon.stop() == .exited(0))
        Files.remove("\(daemon.installation.path)/state/collections.jsonl")
        return daemon.installation
    }

    private static func list(_ connection: Connection) throws -> [String] {
        try connection.call("collection.list").result?["collections"]?.elements?.compactMap { $0["name"]?.string } ?? []
    }

    private static func awaitAll(_ connection: Connection, beside others: [String] = []) throws {
        let all = (names + ["g"] + others).sorted()
        let deadline = Deadline()
        while try list(connection).count < all.count {
            try #require(!deadline.hasPassed, "not all are listed")
        }
        #expect(try list(connection) == all)
    }

    @Test func areListedWithoutBeingUsed() throws {
        let daemon = try Daemon(on: Self.installation())
        try Self.awaitAll(daemon.connect())
        #expect(daemon.log.contains("found that the catalog lacked"))
        #expect(try daemon.stop() == .exited(0))
    }

    /// Immediately after the start, when nobody has used any of them.
    @Test func areProtectedFromTheStart() throws {
        let daemon = try Daemon(on: Self.installation())
        try daemon.installation.configure(Self.configuration("\"f*\": {backend: files}\n\"g\": {backend: main}"))
        let reply = try Self.reload(daemon.connect())
        #expect(reply.error?.name == "invalid_configuration", "\(reply)")
        for name in ["found 7", "found 299", "g"] {
            #expect(daemon.log.contains("collection \(name) has 1 record"), "\(name)")
        }
        #expect(try daemon.stop() == .exited(0))
    }

    /// A daemon that says that it serves knows what its storages have: a start with a mistyped name is refused however
    /// soon it follows.
    @Test func areProtectedFromTheNextStart() throws {
        let installation = try Self.installation()
        try Daemon(on: installation).kill()
        try installation.configure(Self.configuration("\"h*\": {backend: main}\n\"g\": {backend: files}"))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        for name in ["found 0", "found 42", "found 299"] {
            #expect(outcome.errors.contains("collection \(name) has 1 record"), "\(name)")
        }
    }

    /// A storage that is not available after the catalog was lost: what it has is not orphaned by what is changed
    /// before that is known.
    @Test func areProtectedBeforeTheyAreFound() throws {
        let installation = try Self.installation()
        let lock = try SQLiteLock(of: "\(installation.path)/main.sqlite", isExclusive: true)
        let daemon = try Daemon(on: installation)
        #expect(daemon.log.contains("backend main: it is not known yet which collections its storage has"))
        let connection = try daemon.connect()
        for rules in [
            "\"f*\": {backend: files}\ng: {backend: files}", "g: {backend: files}",
            "\(Self.rules)\n\"found 1\": {backend: files}",
        ] {
            try installation.configure(Self.configuration(rules))
            for params in ["{}", #"{"move":true}"#] {
                let reply = try connection.call("daemon.reload", params)
                #expect(reply.error?.name == "unavailable", "\(reply)")
                #expect(reply.error?.message.contains("backend main: it is not known yet") == true, "\(reply)")
            }
            let dryRun = try connection.call("daemon.reload", #"{"dryRun":true}"#)
            let refusal = dryRun.result?["refusals"]?.elements?.first?.string
            #expect(refusal?.hasPrefix("backend main: it is not known yet") == true, "\(dryRun)")
        }
        // What concerns another backend, or no place, is none of that.
        try installation.configure(
            Self.configuration("\"f*\": {backend: main, indexes: [n]}\nh: {backend: files}\ng: {backend: files}"))
        #expect(try connection.call("daemon.reload").result != nil)

        try lock.end()
        try Self.awaitAll(connection, beside: ["h"])
        try installation.configure(Self.configuration("\"f*\": {backend: files}\n\"g\": {backend: files}"))
        try Self.expectOrphan(connection)
        #expect(try daemon.stop() == .exited(0))
    }

    /// Reloads until all collections are known.
    private static func reload(_ connection: Connection) throws -> Reply {
        let deadline = Deadline()
        while true {
            let reply = try connection.call("daemon.reload")
            guard reply.error?.name == "unavailable", !deadline.hasPassed else { return reply }
        }
    }

    /// Reloads when all collections are known: the first of those that were found would be orphaned.
    private static func expectOrphan(_ connection: Connection) throws {
        let reply = try reload(connection)
        #expect(reply.error?.message.contains("collection found 0 has 1 record") == true, "\(reply)")
    }

    /// What cannot be looked at is not dropped, and a drop in another backend is none of that.
    @Test func areNotDroppedBeforeTheyAreFound() throws {
        let installation = try Self.installation()
        let lock = try SQLiteLock(of: "\(installation.path)/main.sqlite", isExclusive: true)
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        let refusal = try connection.call("collection.drop", #"{"collection":"found 1"}"#)
        #expect(refusal.error?.name == "unavailable", "\(refusal)")
        #expect(try connection.call("collection.drop", #"{"collection":"g"}"#).result?["dropped"]?.boolean == true)

        try lock.end()
        try Self.awaitAll(connection)
        #expect(try connection.item("found 1", "a") == "1" && connection.item("g", "a") == nil)
        #expect(
            try connection.call("collection.drop", #"{"collection":"found 1"}"#).result?["dropped"]?.boolean == true)
        #expect(try connection.item("found 1", "a") == nil)
        #expect(try daemon.stop() == .exited(0))
    }

    /// A collection that is moved to a storage which is not listed yet: what has its name there is not overwritten, and
    /// what has another name is protected after the switch as before.
    @Test func areNotOverwrittenBeforeTheyAreFound() throws {
        let installation = try Self.installation()
        var daemon = try Daemon(on: installation)
        try Self.awaitAll(daemon.connect())
        // Of the records of g in main the catalog knows nothing then.
        try installation.configure(Self.configuration("\"f*\": {backend: main}\ng: {backend: main}"))
        var connection = try daemon.connect()
        #expect(try connection.call("daemon.reload", #"{"force":true}"#).result != nil)
        #expect(try connection.create("g", "a", "2").result != nil)
        #expect(try daemon.stop() == .exited(0))
        try installation.configure(Self.configuration("\(Self.rules)\nh: {backend: files}"))
        Files.remove("\(installation.path)/state/collections.jsonl")
        let lock = try SQLiteLock(of: "\(installation.path)/main.sqlite", isExclusive: true)
        daemon = try Daemon(on: installation)
        connection = try daemon.connect()
        #expect(try connection.create("h", "a", "3").result != nil)
        try installation.configure(
            Self.configuration("\"f*\": {backend: main}\ng: {backend: main}\nh: {backend: main}"))
        #expect(try connection.reloadMoving() == ["g", "h"])

        try lock.end()
        let moves = try connection.awaitMoves { $0.count == 1 && $0.first?["phase"]?.string == "failed" }
        let reason = moves.first?["reason"]?.string
        #expect(moves.first?["collection"]?.string == "g" && reason?.contains("records of that name") == true)
        #expect(try connection.item("g", "a") == "1" && connection.item("h", "a") == "3")
        #expect(try connection.describe("h")["backend"]?.string == "main")
        try Self.awaitAll(connection, beside: ["h"])
        try installation.configure(
            Self.configuration("\"f*\": {backend: files}\ng: {backend: files}\nh: {backend: main}"))
        try Self.expectOrphan(connection)
        #expect(try daemon.stop() == .exited(0))
    }

    /// A state directory that is full while it is to be noted what a storage has: no client can write to what is not
    /// known yet, nothing is orphaned, and all is known once there is room.
    @Test func areFoundOnceThereIsRoom() throws {
        let installation = try Self.installation()
        let disk = try FaultyDisk()
        try disk.fail("write", "collections.jsonl", with: ENOSPC)
        let daemon = try Daemon(on: installation, environment: disk.variables)
        #expect(daemon.log.contains("backend main: it is not known yet which collections its storage has"))
        let connection = try daemon.connect()
        let write = try connection.create("found 1", "b", "1")
        #expect(write.error?.name == "no_space", "\(write)")
        let read = try connection.read("found 1", "a")
        #expect(read.result?["item"]?.text == "1" || read.error?.name == "no_space", "\(read)")
        try installation.configure(Self.configuration("\"f*\": {backend: files}\n\"g\": {backend: main}"))
        let reload = try connection.call("daemon.reload", #"{"move":true}"#)
        #expect(reload.error?.name == "unavailable", "\(reload)")

        try disk.heal()
        try Self.awaitAll(connection)
        #expect(try connection.item("found 1", "a") == "1" && connection.item("found 1", "b") == nil)
        // The file has its name: that it is listed does not say that it has been found.
        #expect(try connection.item("g", "a") == "1")
        try daemon.kill()
        let start = try installation.startInVain()
        #expect(start.status == .exited(78))
        for name in ["found 0", "found 299", "g"] {
            #expect(start.errors.contains("collection \(name) has 1 record"), "\(name)")
        }
    }

    /// By force it is done before.
    @Test func areLeftByForceBeforeTheyAreFound() throws {
        let installation = try Self.installation()
        let lock = try SQLiteLock(of: "\(installation.path)/main.sqlite", isExclusive: true)
        let daemon = try Daemon(on: installation)
        try installation.configure(Self.configuration("g: {backend: files}"))
        #expect(try daemon.connect().call("daemon.reload", #"{"force":true}"#).result != nil)
        try lock.end()
        #expect(try daemon.stop() == .exited(0))
    }

    /// A mistyped name at the first start after the catalog was lost: nothing tells that it is one, but the log does.
    @Test func whatNoRuleNamesIsSaidOnce() throws {
        let installation = try Self.installation()
        let text = "backend files: no rule of the configuration names these collections, which its storage has: "
        try installation.configure(Self.configuration("\"f*\": {backend: main}\nh: {backend: files}"))
        for _ in 0..<2 {
            let daemon = try Daemon(on: installation)
            #expect(daemon.log.split(separator: "\n").count { $0.contains(text) && $0.contains("g") } == 1)
            #expect(!daemon.log.contains("backend main: no rule"))
            #expect(try daemon.stop() == .exited(0))
        }
        try installation.configure(Self.configuration(Self.rules))
        let daemon = try Daemon(on: installation)
        try Self.awaitAll(daemon.connect())
        #expect(try daemon.stop() == .exited(0))
    }

    /// A reload that maps what was there without a rule.
    @Test(arguments: [rules, "found 1: {backend: main}"])
    func areFoundAfterAReload(rules: String) throws {
        let installation = try Self.installation()
        try installation.configure(Self.configuration("other: {backend: main}"))
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try Self.list(connection) == ["other"])
        try installation.configure(Self.configuration(rules))
        #expect(try Self.reload(connection).result != nil)
        try installation.configure(Self.configuration("other: {backend: main}"))
        let reply = try Self.reload(connection)
        #expect(daemon.log.contains("collection found 1 has 1 record"), "\(reply)")
        #expect(daemon.log.contains("collection found 2 has 1 record") == (rules == Self.rules), "\(reply)")
        #expect(try daemon.stop() == .exited(0))
    }

    /// What a move has left is known by the catalog alone. Without it a drop does not remove that, no move goes there,
    /// and it is served where the file says so by force.
    @Test func originalsThatTheCatalogHasLost() throws {
        let installation = try Installation(Self.configuration("c: {backend: main}"))
        var daemon = try Daemon(on: installation)
        var connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        try installation.configure(Self.configuration("c: {backend: files}"))
        try connection.reloadMoving()
        try connection.awaitMoves { $0.isEmpty }
        #expect(try daemon.stop() == .exited(0))
        Files.remove("\(installation.path)/state/collections.jsonl")

        daemon = try Daemon(on: installation)
        connection = try daemon.connect()
        #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).result?["dropped"]?.boolean == true)
        #expect(try connection.create("c", "new", "2").result != nil)
        try installation.configure(Self.configuration("c: {backend: main}"))
        let refusal = try connection.call("daemon.reload", #"{"move":true}"#)
        #expect(daemon.log.contains("there are records of that name in backend main as json"), "\(refusal)")
        #expect(try connection.item("c", "new") == "2" && connection.item("c", "1") == nil)

        #expect(try connection.call("daemon.reload", #"{"force":true}"#).result != nil)
        #expect(try connection.item("c", "new") == nil && connection.item("c", "1") == "1")
        #expect(try connection.describe()["originals"]?.elements?.first?["backend"]?.string == "files")
        #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).result?["dropped"]?.boolean == true)
        try connection.awaitRemovals()
        #expect(try daemon.stop() == .exited(0))
        Files.remove("\(installation.path)/state/collections.jsonl")
        daemon = try Daemon(on: installation)
        connection = try daemon.connect()
        #expect(try connection.item("c", "1") == nil && connection.item("c", "new") == nil)
        #expect(try daemon.stop() == .exited(0))
    }
}
