import CRUDTestSupport
import Glibc
import Testing

/// Collections that are moved to a place where they have a feed of changes.
@Suite struct MoveFeedTests {
    /// The place that a collection leaves need not be able to keep a feed, and the log does not blame its options.
    @Test func theFeedBeginsInTheNewPlace() throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: files}"))
        let connection = try daemon.connect()
        for id in 0..<10 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        try daemon.installation.configure(text: MovePlaces.configuration("{backend: main, changes: true}").text)
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        let page = try connection.call("collection.changes", #"{"collection":"c"}"#).result
        #expect(page?["changes"]?.elements?.count == 10)
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("feed of changes") }
        #expect(lines.count == 1, "\(daemon.log)")
        #expect(lines.first?.contains(#"backend files: collection "c" has no feed of changes"#) == true)
        #expect(lines.first?.contains("where the collection is being moved to") == true)
        #expect(!daemon.log.contains("options"), "\(daemon.log)")
    }

    private static let cluster = "cluster: {plugin: postgresql, options: \(PostgreSQLServer.options("moved_feed"))}"
    /// Places that keep a feed, inline and in a child.
    private static let places = [
        "{backend: main, changes: true}", "{backend: kid, format: plist, changes: true}",
        "{backend: logged, changes: true}", "{backend: cluster, changes: true}",
        "{backend: other, format: xml, changes: true}",
    ]

    private static func configuration(_ place: String) -> Configuration {
        MovePlaces.configuration(place, backends: cluster, more: #""d": {backend: other, changes: true}"#)
    }

    /// What has changed behind a cursor of the old place, deletions included, is the same in the new one, also when the
    /// daemon was killed since; and there is no change more, whatever else was written there.
    @Test(arguments: places.indices) func aCursorIsValidInTheNewPlace(from first: Int) throws {
        var daemon = try Daemon(Self.configuration(Self.places[first]))
        var connection = try daemon.connect()
        for id in 0..<20 { #expect(try connection.create("c", "\(id)", "\(id)").result != nil) }
        for id in 0..<500 { #expect(try connection.create("d", "\(id)", "\(id)").result != nil) }
        let start = try connection.changes("c").cursor
        for id in ["3", "1"] { #expect(try connection.delete("c", id).result != nil) }
        #expect(try connection.create("c", "1", #""again""#).result != nil)
        let middle = try connection.changes("c", after: start).cursor
        #expect(try connection.update("c", "7", "70").result != nil)
        #expect(try connection.delete("c", "9").result != nil)
        let end = try connection.changes("c", after: middle).cursor
        for offset in 1...Self.places.count {
            try daemon.installation.configure(Self.configuration(Self.places[(first + offset) % Self.places.count]))
            #expect(try connection.reloadMoving() == ["c"])
            try connection.awaitMoves()
            if offset == 2 {
                try daemon.kill()
                daemon = try daemon.restarted()
                connection = try daemon.connect()
            }
            let what = "\(Self.places[first]), \(offset)"
            let new = (1..<offset).map { "new \($0)" }
            func ids(_ page: Connection.ChangesPage) -> [String?] { page.changes.map { $0["id"]?.string } }
            #expect(try ids(connection.changes("c", after: start)) == ["3", "1", "7", "9"] + new, "\(what)")
            let page = try connection.changes("c", after: middle)
            #expect(ids(page) == ["7", "9"] + new, "\(what)")
            #expect(page.changes.prefix(2).map { $0["deleted"]?.boolean } == [nil, true], "\(what)")
            #expect(try connection.changes("c", after: end).ids == new, "\(what)")
            #expect(try connection.create("c", "new \(offset)", "1").result != nil)
            #expect(try connection.changes("c", after: end).ids == new + ["new \(offset)"], "\(what)")
            #expect(try connection.dropOriginals() == true)
        }
    }

    /// Followers through twenty moves beside writers, and kills of the daemon and of a child.
    @Test func followersMissNothingThroughMoves() throws {
        var random = SeededGenerator(seed: 29)
        let load = FeedLoad(seed: 29)
        var daemon = try Daemon(Self.configuration(Self.places[0]))
        try load.connect(to: daemon)
        #expect(try daemon.connect().create("c", "first", "{}").result != nil)
        for round in 1...MovePlaces.number("CRUDD_MOVE_FEEDS", default: 20) {
            var administrator = try daemon.connect()
            try daemon.installation.configure(Self.configuration(Self.places[round % Self.places.count]))
            #expect(try administrator.reloadMoving() == ["c"])
            let writes = load.writes + Int(random.next() % 300)
            try load.run { load.writes >= writes }
            switch random.next() % 4 {
            case 0:
                administrator = try load.restart(&daemon)
            case 1: if let child = try daemon.children.first.flatMap({ pid_t($0) }) { kill(child, SIGKILL) }
            default: break
            }
            try load.run { try administrator.moves().isEmpty }
            let deadline = Deadline()
            while try administrator.dropOriginals() != true { try #require(!deadline.hasPassed) }
        }
        try load.finish(try daemon.connect())
        #expect(load.expiredCursors == 0)
        #expect(!daemon.log.contains("internal"), "\(daemon.log)")
    }

    /// The new place's storage has used far higher numbers than the old one's, and records expire and are written again
    /// while they are copied.
    @Test func copiesThatExpireHideNothing() throws {
        let daemon = try Self.daemon(withHighNumbersOf: "d")
        let administrator = try daemon.connect()
        try Self.createLongRecords(administrator)
        let load = FeedLoad(seed: 30)
        try load.connect(to: daemon)
        try daemon.installation.configure(Self.configuration(Self.places[4]))
        #expect(try administrator.reloadMoving() == ["c"])
        try load.run { try administrator.moves().isEmpty }
        try load.finish(administrator)
        #expect(load.expiredCursors == 0)
    }

    /// A daemon in which the storage of a collection, which has the record 0, gives out far higher numbers than others.
    private static func daemon(withHighNumbersOf collection: String) throws -> Daemon {
        let daemon = try Daemon(configuration(places[0]))
        #expect(try daemon.connect().create(collection, "0", "1").result != nil)
        // Behind a kill they begin with a new block.
        try daemon.kill()
        return try daemon.restarted()
    }

    /// Enough for a copy that takes some time.
    private static func createLongRecords(_ connection: Connection) throws {
        let text = String(repeating: "long ", count: 2000)
        for block in 0..<4 {
            let operations = (0..<500).map {
                #"{"op":"create","collection":"c","id":"z\#(block).\#($0)","item":{"n":2,"text":"\#(text)"}}"#
            }
            let batch = #"{"operations":[\#(operations.joined(separator: ","))]}"#
            #expect(try connection.call("record.batch", batch).result != nil)
        }
    }

    /// Copies have far higher numbers than the new place's storage has used, and so do changes there from then on.
    @Test func followersOfOtherCollectionsMissNothing() throws {
        let daemon = try Self.daemon(withHighNumbersOf: "c")
        let connection = try daemon.connect()
        try Self.createLongRecords(connection)
        #expect(try connection.upsert("d", "0", "1").result != nil)
        var cursor = try connection.changes("d").cursor
        try daemon.installation.configure(Self.configuration(Self.places[4]))
        #expect(try connection.reloadMoving() == ["c"])
        var number = 0
        while try !connection.moves().isEmpty {
            number += 1
            let upserts = (0..<50).map { id in
                (method: "record.upsert", params: Connection.params("c", "\(id)", item: "\(number)"))
            }
            for reply in try connection.pipeline(upserts) { #expect(reply.result != nil) }
            // Their copies may be stored now.
            cursor = try connection.changes("d", after: cursor).cursor
            #expect(try connection.upsert("d", "\(number)", "1").result != nil)
            let page = try connection.changes("d", after: cursor)
            try #require(page.ids == ["\(number)"])
            cursor = page.cursor
        }
        #expect(number > 0)
    }

    /// Originals are not what a feed that has moved on continues with.
    @Test func originalsThatAreForcedBackHaveANewFeed() throws {
        let daemon = try Daemon(Self.configuration(Self.places[0]))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(Self.configuration(Self.places[4]))
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        let cursor = try connection.changes("c").cursor
        try daemon.installation.configure(Self.configuration(Self.places[0]))
        _ = try connection.reload(force: true)
        #expect(try connection.describe("c")["backend"]?.string == "main")
        let reply = try connection.call("collection.changes", Connection.changesParams("c", cursor))
        #expect(reply.error?.name == "cursor_expired", "\(reply)")
        #expect(try connection.changes("c").ids == ["a"])
    }
}
