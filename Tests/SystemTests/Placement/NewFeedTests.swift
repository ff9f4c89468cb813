import CRUDTestSupport
import Glibc
import Testing

/// A collection with a feed that gets by force to where it was before: the feed that it had there ends before it is
/// served, whatever comes between.
@Suite struct NewFeedTests {
    private static func configuration(_ backend: String) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                """, collections: "c: {backend: \(backend), changes: true}")
    }

    /// A daemon with a collection that has been moved from `main` to `other`, and whose file wants it back.
    ///
    /// - Returns: with cursors from before the move and after it.
    private static func moved(_ disk: FaultyDisk) throws -> (daemon: Daemon, cursors: [String]) {
        let installation = try Installation(configuration("main"))
        let daemon = try Daemon(on: installation, environment: disk.variables)
        let connection = try daemon.connect()
        for id in ["a", "b"] { #expect(try connection.create("c", id, "1").result != nil) }
        let first = try connection.changes("c").cursor
        try installation.configure(configuration("other"))
        try connection.reloadMoving()
        try connection.awaitMoves()
        for id in ["d", "e"] { #expect(try connection.create("c", id, "1").result != nil) }
        let second = try connection.changes("c", after: first).cursor
        try installation.configure(configuration("main"))
        return (daemon, [first, second])
    }

    /// The originals are served, and no cursor of theirs or of the other place is taken for one of the new feed.
    private static func check(_ connection: Connection, _ cursors: [String]) throws {
        let deadline = Deadline()
        while let error = try connection.read("c", "a").error {
            try #require(error.name == "unavailable" && !deadline.hasPassed, "\(error)")
            #expect(error.message.contains("in backend main as json has not begun anew yet"), "\(error)")
            poll(nil, 0, 20)
        }
        #expect(try connection.describe()["backend"]?.string == "main")
        for cursor in cursors {
            let reply = try connection.call("collection.changes", Connection.changesParams("c", cursor))
            #expect(reply.error?.name == "cursor_expired", "\(reply)")
        }
        let page = try connection.changes("c")
        #expect(Set(page.ids) == ["a", "b"])
        #expect(try connection.create("c", "f", "1").result != nil)
        #expect(try connection.changes("c", after: page.cursor).ids == ["f"])
    }

    @Test func endsAtAForcedReload() throws {
        let (daemon, cursors) = try Self.moved(try FaultyDisk())
        let connection = try daemon.connect()
        #expect(try !connection.reload(force: true).isEmpty)
        try Self.check(connection, cursors)
        #expect(try daemon.stop() == .exited(0))
    }

    /// The daemon is killed when the catalog says that it is served there, and the feed has not ended.
    @Test func aKillBeforeItEnds() throws {
        let disk = try FaultyDisk()
        let (daemon, cursors) = try Self.moved(disk)
        let connection = try daemon.connect()
        try disk.kill(atCall: 2, of: "collections.jsonl", isAfter: true)
        #expect(throws: Failure.self) { try connection.reload(force: true) }
        #expect(try daemon.process.waitForExit() == .killed(signal: SIGKILL))
        try disk.heal()
        let again = try Daemon(on: daemon.installation)
        try Self.check(try again.connect(), cursors)
        #expect(try again.stop() == .exited(0))
    }

    /// That the feed has ended cannot be recorded: it ends once more, and the collection is served after that.
    @Test func theEndCannotBeRecorded() throws {
        let disk = try FaultyDisk()
        let (daemon, cursors) = try Self.moved(disk)
        let connection = try daemon.connect()
        // The record of the reload is written and synced; the one after it is not.
        try disk.fail(call: 3, of: "collections.jsonl")
        #expect(try !connection.reload(force: true).isEmpty)
        try Self.check(connection, cursors)
        #expect(disk.log.contains { $0.contains("collections.jsonl") }, "\(disk.log)")
        #expect(try daemon.stop() == .exited(0))
    }

    /// The database is locked, by another program: the collection is not served before that ends.
    @Test func theDatabaseIsLocked() throws {
        let (daemon, cursors) = try Self.moved(try FaultyDisk())
        let connection = try daemon.connect()
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/main.sqlite")
        let closed = #"collection "c" is not served before its new feed of changes has begun"#
        #expect(try connection.reload(force: true).contains(closed))
        for reply in [try connection.read("c", "a"), try connection.create("c", "g", "1")] {
            #expect(reply.error?.name == "unavailable", "\(reply)")
            #expect(reply.error?.message.contains("has not begun anew yet") == true, "\(reply)")
        }
        let deadline = Deadline()
        while !daemon.log.contains("the new feed of collection \"c\" in backend main as json") {
            try #require(!deadline.hasPassed, "\(daemon.log)")
        }
        try lock.end()
        try Self.check(connection, cursors)
        #expect(try daemon.stop() == .exited(0))
    }
}
