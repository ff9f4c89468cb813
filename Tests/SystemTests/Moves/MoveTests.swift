import CRUDTestSupport
import Glibc
import Testing

/// What an administrator sees of moves, and what is refused.
@Suite struct MoveTests {
    private static let home = "{backend: main}"

    private func daemon(_ more: String = "", records: Int = 3) throws -> (Daemon, Connection) {
        let daemon = try Daemon(MovePlaces.configuration(Self.home, more: more))
        let connection = try daemon.connect()
        for id in 0..<records { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        return (daemon, connection)
    }

    private func file(of daemon: Daemon, _ rule: String, backends: String = "", more: String = "") throws {
        try daemon.installation.configure(MovePlaces.configuration(rule, backends: backends, more: more))
    }

    // MARK: Asking for it

    @Test func revisionsAndFormatOfADescribedMove() throws {
        let (daemon, connection) = try daemon()
        let revision = try connection.read("c", "1").result?["revision"]?.string
        try file(of: daemon, "{backend: files, format: xml}")
        let refusal = try connection.reloadInVain()
        #expect(refusal.name == "invalid_configuration")
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        let description = try connection.describe()
        #expect(description["backend"]?.string == "files" && description["format"]?.string == "xml")
        #expect(description["count"]?.integer == 3 && description["move"] == nil)
        #expect(try connection.read("c", "1").result?["revision"]?.string == revision)
        #expect(try connection.item("c", "1") == #"{"n":1}"#)
        #expect(try connection.reloadMoving() == [], "it is where it is to be")
    }

    /// `move: true` in the file, at a reload and at a start; and `crudd --move`.
    @Test(arguments: ["reload", "start", "option"])
    func otherWaysToAskForIt(way: String) throws {
        var (daemon, connection) = try daemon()
        try file(of: daemon, way == "option" ? "{backend: other}" : "{backend: other, move: true}")
        if way == "reload" {
            let reply = try connection.call("daemon.reload")
            #expect(reply.result?["moves"]?.elements?.compactMap(\.string) == ["c"], "\(reply)")
        } else {
            try daemon.stop()
            daemon = try Daemon(on: daemon.installation, arguments: way == "option" ? ["--move"] : [])
            connection = try daemon.connect()
        }
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "other")
        #expect(try connection.describe()["count"]?.integer == 3)
        try daemon.stop()
        daemon = try daemon.restarted()
        #expect(try daemon.connect().item("c", "2") == #"{"n":2}"#)
    }

    /// Whatever a glob maps, several collections at once.
    @Test func everyCollectionOfAGlobIsMoved() throws {
        let (daemon, connection) = try daemon("\"d*\": {backend: main}")
        for name in ["d1", "d2", "d 3"] {
            for id in 0..<20 { #expect(try connection.create(name, "\(id)", #""\#(name)""#).result != nil) }
        }
        #expect(try connection.create("dd", "a", "1").result != nil)
        #expect(try connection.delete("dd", "a").result != nil)
        try file(of: daemon, "{backend: kid, format: plist}", more: "\"d*\": {backend: other, format: xml}")
        #expect(try connection.reloadMoving() == ["c", "d 3", "d1", "d2", "dd"])
        #expect(try connection.create("dd", "a", "2").result != nil)
        try connection.awaitMoves()
        for name in ["d1", "d2", "d 3"] {
            #expect(try connection.describe(name)["backend"]?.string == "other")
            #expect(try connection.item(name, "19") == #""\#(name)""#)
        }
        #expect(try connection.item("dd", "a") == "2")
    }

    /// Only the format changes: both are in one backend under one name.
    @Test(arguments: ["main", "files"])
    func aFormatAloneMayChange(backend: String) throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: \(backend)}"))
        let connection = try daemon.connect()
        for id in 0..<600 { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        try file(of: daemon, "{backend: \(backend), format: plist}")
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        #expect(try connection.delete("c", "0").result != nil)
        #expect(try connection.dropOriginals() == true)
        #expect(try connection.dropOriginals() == false)
        #expect(try connection.describe()["count"]?.integer == 599)
        #expect(try connection.item("c", "599") == #"{"n":599}"#)
        try file(of: daemon, "{backend: \(backend)}")
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        #expect(try connection.describe()["count"]?.integer == 599)
    }

    /// A query goes on in the new place where it has stopped in the old one, with an index there or without.
    @Test(arguments: [
        "", #","sort":[{"property":"n","order":"desc"}]"#, #","filter":{"op":">","args":[{"property":"n"},3]}"#,
        #","sort":[{"property":"m"}]"#,
    ])
    func cursorsStayValid(query: String) throws {
        let cluster = "cluster: {plugin: postgresql, options: \(PostgreSQLServer.options("cursors"))}"
        let places = [
            "{backend: main, indexes: [n]}", "{backend: kid, format: plist}",
            "{backend: cluster, format: xml, indexes: [n, m]}", "{backend: files}", "{backend: main, indexes: [n]}",
        ]
        let daemon = try Daemon(MovePlaces.configuration(places[0], backends: cluster))
        let connection = try daemon.connect()
        for id in 0..<40 {
            let item = #"{"n":\#(id * 7 % 40),"m":\#(id % 3)}"#
            #expect(try connection.create("c", "\(id)", item).result != nil)
        }
        let all = try connection.query("c", #"{"limit":100\#(query)}"#).result?["records"]?.elements
        let expected = try #require(all).map { $0["id"]?.string }
        var found: [String?] = []
        var cursor: String?
        for place in places.dropFirst() + ["the end"] {
            let position = cursor.map { #","cursor":"\#($0)""# } ?? ""
            let page = try connection.query("c", #"{"limit":8\#(query)\#(position)}"#)
            found += try #require(page.result?["records"]?.elements, "\(page)").map { $0["id"]?.string }
            cursor = page.result?["cursor"]?.string
            guard place != "the end" else { continue }
            try file(of: daemon, place, backends: cluster)
            #expect(try connection.reloadMoving() == ["c"])
            try connection.awaitMoves()
            #expect(try connection.dropOriginals() == true)
        }
        #expect(found == expected && cursor == nil)
    }

    // MARK: Refusals

    @Test func theOldBackendMustStay() throws {
        let (daemon, connection) = try daemon()
        let file = "other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}"
        try daemon.installation.configure(Configuration(backends: file, collections: "c: {backend: other}"))
        let reply = try connection.call("daemon.reload", #"{"move":true}"#)
        #expect(reply.error?.name == "invalid_configuration")
        #expect(reply.json["error"]?["message"]?.string?.contains("backend main as json") == true, "\(reply)")
        #expect(try connection.item("c", "0") == #"{"n":0}"#)
        #expect(try connection.moves().isEmpty)
        try daemon.stop()
        let start = try Command.run(
            BuildProducts.path(of: "crudd"), ["--config", daemon.installation.configurationFile, "--move"])
        #expect(start.status == .exited(78) && start.errors.contains("has to stay in the file"), "\(start.errors)")
    }

    /// Originals that are wanted are not overwritten, nor are those of another format in the new backend.
    @Test(arguments: ["json", "xml"])
    func recordsInTheNewPlaceAreNotOverwritten(format: String) throws {
        let (daemon, connection) = try daemon()
        try file(of: daemon, "{backend: other, format: \(format)}")
        let forced = try connection.reload(force: true)
        #expect(!forced.isEmpty)
        #expect(try connection.create("c", "0", "true").result != nil)
        try file(of: daemon, Self.home)
        #expect(try !connection.reload(force: true).isEmpty)
        try file(of: daemon, "{backend: other}")
        let reply = try connection.call("daemon.reload", #"{"move":true}"#)
        if format == "json" {
            #expect(reply.error?.name == "invalid_configuration")
            let message = reply.json["error"]?["message"]?.string
            #expect(message?.contains("backend other as json") == true, "\(reply)")
        } else {
            #expect(reply.result != nil, "\(reply)")
            try connection.awaitMoves()
            #expect(try connection.describe()["format"]?.string == "json")
        }
        #expect(try connection.item("c", "0") == #"{"n":0}"#)
        try file(of: daemon, "{backend: other, format: \(format)}")
        #expect(try !connection.reload(force: true).isEmpty)
        #expect(try connection.item("c", "0") == "true")
    }

    /// The originals stay until they are dropped, and are not served again.
    @Test func originalsAreNotServedAgain() throws {
        var (daemon, connection) = try daemon()
        try file(of: daemon, "{backend: other}")
        try connection.reloadMoving()
        try connection.awaitMoves()
        for id in 0..<3 { #expect(try connection.delete("c", "\(id)").result != nil) }
        try file(of: daemon, Self.home)
        for parameters in ["{}", #"{"move":true}"#] {
            let reply = try connection.call("daemon.reload", parameters)
            #expect(reply.json["error"]?["message"]?.string?.contains("older") == true, "\(reply)")
        }
        try daemon.stop()
        #expect(try daemon.installation.startInVain().errors.contains("older"))
        try file(of: daemon, "{backend: other}")
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        #expect(try connection.dropOriginals() == true)
        try file(of: daemon, Self.home)
        #expect(try !connection.reload().isEmpty, "nothing is there any more, here or there")
        #expect(try connection.describe()["count"]?.integer == 0)
    }

    // MARK: Failures

    /// A record that the format cannot hold.
    @Test func aRecordThatCannotBeHeldFailsTheMove() throws {
        var (daemon, connection) = try daemon(records: 200)
        #expect(try connection.create("c", "zz", #"{"deep":[1,null]}"#).result != nil)
        try file(of: daemon, "{backend: kid, format: plist}")
        #expect(try connection.reloadMoving() == ["c"])
        func isFailed(_ moves: [JSON]) -> Bool { moves.first?["phase"]?.string == "failed" }
        var move = try #require(try connection.awaitMoves(until: isFailed).first)
        #expect(move["reason"]?.string?.contains("\"zz\"") == true, "\(move.text)")
        #expect(move["from"]?.text == #"{"backend":"main","format":"json"}"#)
        #expect(move["to"]?.text == #"{"backend":"kid","format":"plist"}"#)
        #expect(move["collection"]?.string == "c" && move["total"]?.integer == 201)
        #expect(try connection.describe()["backend"]?.string == "main")
        #expect(try connection.describe()["move"]?["phase"]?.string == "failed")
        #expect(try connection.update("c", "7", #"{"n":77}"#).result != nil)

        // A start tries again.
        try daemon.stop()
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        move = try #require(try connection.awaitMoves(until: isFailed).first)
        #expect(move["reason"]?.string?.contains("\"zz\"") == true)
        #expect(try connection.update("c", "zz", "1").result != nil)
        #expect(try connection.delete("c", "8").result != nil)
        #expect(try connection.reloadMoving() == [], "it has begun already")
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "kid")
        #expect(try connection.describe()["count"]?.integer == 200)
        #expect(try connection.item("c", "7") == #"{"n":77}"#)
    }

    /// Back to the old file in the middle: what was copied is removed.
    @Test(arguments: [false, true])
    func aReloadOfTheOldFileCancels(killed: Bool) throws {
        var (daemon, connection) = try daemon(records: 200)
        #expect(try connection.create("c", "zz", "null").result != nil)
        try file(of: daemon, "{backend: files, format: plist}")
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        #expect(try Files.names(in: "\(daemon.installation.path)/files/c").count > 100, "copies")
        try file(of: daemon, Self.home)
        #expect(try !connection.reload().isEmpty)
        if killed {
            try daemon.kill()
            daemon = try daemon.restarted()
            connection = try daemon.connect()
        }
        try connection.awaitRemovals()
        #expect(try connection.moves().isEmpty)
        #expect((try? Files.names(in: "\(daemon.installation.path)/files/c").count) ?? 0 == 0)
        #expect(try connection.describe()["count"]?.integer == 201)
        #expect(try connection.dropOriginals() == false)
    }

    /// Acts of many moves are recorded one after the other meanwhile.
    @Test func manyMovesAreCancelledAtOnce() throws {
        func configuration(_ rule: String) -> Configuration {
            MovePlaces.configuration("{backend: main}", more: "\"m*\": \(rule)")
        }
        let daemon = try Daemon(configuration("{backend: main}"))
        let connection = try daemon.connect()
        // Which a property list cannot hold, so that no move comes to its end.
        for number in 0..<200 { #expect(try connection.create("m\(number)", "a", "null").result != nil) }
        for round in 0..<8 {
            try daemon.installation.configure(configuration("{backend: other, format: plist}"))
            #expect(try connection.reloadMoving().count == 200)
            // Each time some more of them have begun.
            for number in 0..<round * 4 { #expect(try connection.upsert("c", "\(number)", "1").result != nil) }
            try daemon.installation.configure(configuration("{backend: main}"))
            let reply = try connection.call("daemon.reload")
            #expect(reply.result?["cancelled"]?.elements?.count == 200, "\(round): \(reply)")
            try connection.awaitRemovals()
        }
        #expect(try connection.item("m7", "a") == "null")
        #expect(try daemon.stop() == .exited(0))
    }

    /// A third place is refused unless the collection is to be moved there; to drop the collection ends the move.
    @Test func aCollectionCanBeDroppedInItsMove() throws {
        let (daemon, connection) = try daemon(records: 100)
        #expect(try connection.create("c", "zz", "null").result != nil)
        try file(of: daemon, "{backend: files, format: plist}")
        try connection.reloadMoving()
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        try file(of: daemon, "{backend: other}")
        let reply = try connection.call("daemon.reload")
        #expect(reply.json["error"]?["message"]?.string?.contains("is being moved") == true, "\(reply)")
        #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).result?["dropped"]?.boolean == true)
        #expect(try connection.moves().isEmpty)
        let description = try connection.describe()
        #expect(description["backend"]?.string == "files" && description["count"]?.integer == 0)
        #expect((try? Files.names(in: "\(daemon.installation.path)/files/c").count) ?? 0 == 0)
        #expect(try connection.create("c", "a", "1").result != nil)
    }

    /// A backend that is not there for a while suspends a move.
    @Test func aBackendThatIsDownSuspendsAMove() throws {
        let (daemon, connection) = try daemon(records: 50)
        let script = "\(daemon.installation.path)/late.py"
        try file(
            of: daemon, "{backend: late}",
            backends: "late: {command: [/usr/bin/python3, $DIRECTORY/late.py], options: {path: $DIRECTORY/late.db}}")
        let source = "\(BuildProducts.packageDirectory)/Plugins/Examples/store.py"
        // At first it cannot say that its options are good, and so is down.
        try Files.write("raise SystemExit(3)\n", to: script, mode: 0o755)
        #expect(try connection.reloadMoving() == ["c"])
        let moves = try connection.awaitMoves { $0.first?["phase"]?.string == "suspended" }
        #expect(moves[0]["reason"]?.string?.contains("late") == true, "\(moves[0].text)")
        #expect(try connection.update("c", "7", "7").result != nil)
        try Files.copy(source, to: script, mode: 0o755)
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "late")
        #expect(try connection.item("c", "7") == "7")
        #expect(try connection.describe()["count"]?.integer == 50)
    }

    /// A bulk delete in the middle deletes what it has found, in both places.
    @Test func aBulkDeleteIsComplete() throws {
        let (daemon, connection) = try daemon(records: 600)
        let other = try daemon.connect()
        try file(of: daemon, "{backend: kid, format: plist}")
        let deletion = #"{"collection":"c","filter":{"op":">=","args":[{"property":"n"},10]}}"#
        try connection.sendFrame(Connection.request("daemon.reload", #"{"move":true}"#, id: "1"))
        try other.sendFrame(Connection.request("record.deleteMatching", deletion, id: "1"))
        #expect(try other.receive().result?["deleted"]?.integer == 590)
        #expect(try connection.receive().result != nil)
        try connection.awaitMoves()
        #expect(try connection.describe()["count"]?.integer == 10)
        #expect(try connection.describe()["backend"]?.string == "kid")
    }
}
