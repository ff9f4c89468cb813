import CRUDTestSupport
import Glibc
import Testing

/// What an administrator does beside storage or a state directory that fails: nothing that is acknowledged is lost, and
/// a refusal changes nothing.
@Suite struct PlacementFaultTests {
    private static func configuration(_ rules: String) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                third: {plugin: sqlite, options: {path: $DIRECTORY/third.sqlite}}
                """, collections: rules)
    }

    private func ids(_ connection: Connection, _ collection: String = "c") throws -> Int? {
        try connection.call("record.count", #"{"collection":"\#(collection)"}"#).result?["count"]?.integer
    }

    // MARK: Drops beside locked storage

    /// One of the two databases of a move is locked when the collection is dropped: the drop is refused and nothing has
    /// changed, or it is recorded and no record comes back, and none that is acknowledged later is removed.
    @Test(arguments: ["main", "other"])
    func aDropInAMoveBesideALockedDatabase(locked: String) throws {
        let daemon = try Daemon(Self.configuration("c: {backend: main}"))
        let connection = try daemon.connect()
        for id in 0..<300 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        // A record that the new place cannot hold keeps the move from ending.
        #expect(try connection.create("c", "zz", "null").result != nil)
        try daemon.installation.configure(Self.configuration("c: {backend: other, format: plist}"))
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/\(locked).sqlite")
        let reply = try connection.call("collection.drop", #"{"collection":"c"}"#)
        if reply.result?["dropped"]?.boolean == true {
            #expect(try ids(connection) ?? 0 == 0, "\(reply)")
            let created = try connection.upsert("c", "later", "1")
            #expect(created.result != nil || created.error?.name == "unavailable", "\(created)")
            try lock.end()
            try connection.awaitRemovals()
            #expect(try ids(connection) == (created.result == nil ? 0 : 1))
        } else {
            try lock.end()
            #expect(try ids(connection) == 301, "\(reply)")
            #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).result != nil)
            try connection.awaitRemovals()
            #expect(try ids(connection) == 0)
        }
        #expect(try connection.create("c", "new", "2").result != nil)
        let description = try connection.describe()
        try daemon.kill()
        let again = try Daemon(on: daemon.installation)
        let other = try again.connect()
        #expect(try other.item("c", "new") == "2")
        #expect(try other.describe()["backend"]?.string == description["backend"]?.string)
        try other.awaitRemovals()
        #expect(try other.item("c", "7") == nil)
        #expect(try again.stop() == .exited(0))
    }

    // MARK: Beginning again

    /// A move is cancelled and begun again while its copies are being removed, which a lock keeps from ending.
    @Test(arguments: [false, true])
    func aMoveThatBeginsAgainWhileItsCopiesAreRemoved(killed: Bool) throws {
        var daemon = try Daemon(Self.configuration("c: {backend: main}\nx: {backend: main}"))
        var connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        #expect(try connection.create("c", "zz", "null").result != nil)
        #expect(try connection.create("x", "a", "1").result != nil)
        let moving = Self.configuration("c: {backend: other, format: plist}\nx: {backend: main}")
        try daemon.installation.configure(moving)
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/other.sqlite")
        try daemon.installation.configure(Self.configuration("c: {backend: main}\nx: {backend: main}"))
        #expect(try !connection.reload().isEmpty)
        try daemon.installation.configure(moving)
        #expect(try connection.reloadMoving() == ["c"])
        if killed {
            try lock.end()
            try daemon.kill()
            daemon = try Daemon(on: daemon.installation)
            connection = try daemon.connect()
        }
        // Something else of another collection.
        #expect(try connection.call("collection.drop", #"{"collection":"x"}"#).result?["dropped"]?.boolean == true)
        #expect(try ids(connection) == 101)
        if !killed { try lock.end() }
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        #expect(try connection.update("c", "zz", "2").result != nil)
        #expect(try connection.reloadMoving() == [])
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "other")
        #expect(try ids(connection) == 101)
        #expect(try daemon.stop() == .exited(0))
    }

    /// A forced reload in a move leaves copies, which the catalog knows: they are removed, and do not obstruct later.
    @Test func aForcedReloadInAMove() throws {
        let daemon = try Daemon(Self.configuration("c: {backend: main}"))
        let connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        #expect(try connection.create("c", "zz", "null").result != nil)
        try daemon.installation.configure(Self.configuration("c: {backend: other, format: plist}"))
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        try daemon.installation.configure(Self.configuration("c: {backend: third}"))
        #expect(try !connection.reload(force: true).isEmpty)
        try connection.awaitRemovals()
        #expect(try ids(connection) == 0)
        let description = try connection.describe()
        #expect(description["originals"]?.text == #"[{"backend":"main","format":"json"}]"#, "\(description.text)")
        #expect(try connection.create("c", "new", "1").result != nil)
        try daemon.installation.configure(Self.configuration("c: {backend: other, format: plist}"))
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        #expect(try ids(connection) == 1)
        #expect(try connection.dropOriginals() == true)
        #expect(try ids(connection) == 1)
        #expect(try daemon.stop() == .exited(0))
    }

    /// A backend leaves the file while copies are to be removed from it: they are removed when it is back, and are not
    /// served in between.
    @Test func removalsWaitForABackendThatLeaves() throws {
        func configuration(_ rule: String, _ names: String...) -> Configuration {
            let backends = names.map { "\($0): {plugin: sqlite, options: {path: $DIRECTORY/\($0).sqlite}}" }
            return Configuration(backends: backends.joined(separator: "\n"), collections: "c: \(rule)")
        }
        var daemon = try Daemon(configuration("{backend: main}", "main", "other"))
        var connection = try daemon.connect()
        for (id, item) in [("a", "1"), ("zz", "null")] { #expect(try connection.create("c", id, item).result != nil) }
        try daemon.installation.configure(configuration("{backend: other, format: plist}", "main", "other"))
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        try daemon.installation.configure(configuration("{backend: main}", "main"))
        #expect(try connection.reload().contains("backend other: removed"))
        for isAgain in [false, true] {
            if isAgain {
                #expect(try daemon.stop() == .exited(0))
                daemon = try Daemon(on: daemon.installation)
                connection = try daemon.connect()
            }
            let deadline = Deadline()
            let reason = "backend other is not among those of the configuration"
            while try connection.removals().first?["reason"]?.string != reason { try #require(!deadline.hasPassed) }
            #expect(try ids(connection) == 2)
        }
        try daemon.installation.configure(configuration("{backend: main}", "main", "other"))
        #expect(try connection.reload() == ["backend other: added"])
        try connection.awaitRemovals()
        #expect(try connection.update("c", "zz", "2").result != nil)
        try daemon.installation.configure(configuration("{backend: other, format: plist}", "main", "other"))
        try connection.reloadMoving()
        try connection.awaitMoves()
        #expect(try ids(connection) == 2)
        #expect(try daemon.stop() == .exited(0))
    }

    // MARK: A state directory that fails

    /// Each call of the catalog fails while a reload is to move two collections: nothing of it has happened, and a
    /// start asks for what the reload has asked for.
    @Test(arguments: ["write", "sync"])
    func aReloadWithoutItsRecord(operation: String) throws {
        let disk = try FaultyDisk()
        let installation = try Installation(Self.configuration("a: {backend: main}\nb: {backend: main}"))
        let daemon = try Daemon(on: installation, environment: disk.variables)
        let connection = try daemon.connect()
        for name in ["a", "b"] { #expect(try connection.create(name, "1", "1").result != nil) }
        try installation.configure(Self.configuration("a: {backend: other}\nb: {backend: other}"))
        try disk.fail(operation, "collections.jsonl")
        let reply = try connection.call("daemon.reload", #"{"move":true}"#)
        // With every sync failing it is not known what a start would find.
        #expect(reply.error?.name == (operation == "write" ? "unavailable" : "outcome_unknown"), "\(reply)")
        #expect(try connection.moves().isEmpty)
        let catalog = try connection.call("daemon.status").result?["catalog"]
        #expect(catalog?["state"]?.string == (operation == "write" ? "ready" : "in doubt"))
        let reason = catalog?["reason"]?.string
        #expect(reason?.contains("\(installation.path)/state/collections.jsonl") == (operation == "write" ? nil : true))
        for name in ["a", "b"] { #expect(try connection.item(name, "1") == "1") }
        let drop = try connection.call("collection.drop", #"{"collection":"a"}"#)
        #expect(drop.error?.name == "unavailable", "\(drop)")
        #expect(try connection.item("a", "1") == "1")
        try disk.heal()
        let deadline = Deadline()
        while try connection.call("daemon.status").result?["catalog"]?["state"]?.string != "ready" {
            try #require(!deadline.hasPassed)
        }
        try daemon.kill()
        let start = try installation.startInVain()
        #expect(start.errors.contains("--move moves them") && !start.errors.contains("drop"), "\(start.errors)")
        let again = try Daemon(on: installation, arguments: ["--move"])
        let other = try again.connect()
        try other.awaitMoves()
        for name in ["a", "b"] {
            #expect(try other.item(name, "1") == "1")
            #expect(try other.describe(name)["backend"]?.string == "other")
        }
        #expect(try again.stop() == .exited(0))
    }

    // MARK: What is found

    /// A collection that is in storage already is listed and protected from the first time on that it is used.
    @Test func whatIsFoundIsKnown() throws {
        let daemon = try Daemon(Self.configuration("\"*\": {backend: main}"))
        let connection = try daemon.connect()
        #expect(try connection.create("found", "1", "1").result != nil)
        try daemon.stop()
        Files.remove("\(daemon.installation.path)/state/collections.jsonl")
        let again = try Daemon(on: daemon.installation)
        let other = try again.connect()
        #expect(try other.item("found", "1") == "1")
        let list = try other.call("collection.list").result?["collections"]?.elements
        #expect(list?.compactMap { $0["name"]?.string } == ["found"])
        try again.installation.configure(Self.configuration("\"*\": {backend: other}"))
        #expect(try other.reloadInVain().name == "invalid_configuration")
        #expect(try other.item("found", "1") == "1")
        #expect(try again.stop() == .exited(0))
    }
}
