import CRUDTestSupport
import Glibc
import Testing

/// Disks and servers that fail during a move: the collection stays complete, in one place, and the move continues.
@Suite(.serialized) struct MoveFaultTests {
    private static let needsDisks = "needs root and loop devices"

    @Test(
        .enabled(if: PowerCutDisk.isAvailable, "\(needsDisks)"),
        arguments: [
            "plugin: sqlite, options: {path: $DISK/full.sqlite}",
            "plugin: filesystem, isolation: process, options: {directory: $DISK/full}",
        ])
    func aFullDiskSuspendsAMove(target: String) throws {
        let disk = try PowerCutDisk()
        let backend = "full: {\(target.replacing("$DISK", with: disk.path))}"
        let daemon = try Daemon(MovePlaces.configuration("{backend: main}", backends: backend))
        let connection = try daemon.connect()
        let item = JSON.quote(String(repeating: "x", count: 2000))
        for id in 0..<200 { #expect(try connection.create("c", "\(id)", item).result != nil) }
        try disk.setFull(true)
        try daemon.installation.configure(MovePlaces.configuration("{backend: full}", backends: backend))
        #expect(try connection.reloadMoving() == ["c"])
        let moves = try connection.awaitMoves { $0.first?["phase"]?.string == "suspended" }
        #expect(moves[0]["reason"]?.string?.isEmpty == false, "\(moves[0].text)")
        #expect(try connection.describe()["backend"]?.string == "main")
        #expect(try connection.update("c", "7", "7").result != nil)
        #expect(try connection.delete("c", "8").result != nil)
        try disk.setFull(false)
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "full")
        #expect(try connection.describe()["count"]?.integer == 199)
        #expect(try connection.item("c", "7") == "7" && connection.item("c", "9") == item)
    }

    /// Old place, new place and the daemon's own state lose what was not synced.
    @Test(.enabled(if: PowerCutDisk.isAvailable, "\(needsDisks)"))
    func aMoveContinuesAfterAPowerCut() throws {
        let disk = try PowerCutDisk()
        try Files.makeDirectory("\(disk.path)/state", mode: 0o700)
        let places = ["{backend: main}", "{backend: files, format: plist}", "{backend: other, format: xml}"]
        func text(_ place: String) -> String {
            MovePlaces.configuration(place).text.replacing(", fsync: false", with: "")
                .replacing("$DIRECTORY/state", with: "\(disk.path)/state")
                .replacing("{path: $DIRECTORY", with: "{path: \(disk.path)")
                .replacing("{directory: $DIRECTORY", with: "{directory: \(disk.path)")
        }
        let installation = try Installation(text: text(places[0]))
        let load = MoveLoad(records: 300, depth: 4, seed: 8)
        var daemon = try Daemon(on: installation)
        try load.connect(4, to: daemon)
        try load.fill()
        for (place, replies) in [(1, 50), (2, 300), (0, 700)] {
            let administrator = try daemon.connect()
            try installation.configure(text: text(places[place]))
            #expect(try administrator.reloadMoving() == ["c"])
            let wanted = load.replies + replies
            try load.run(administrator) { _ in load.replies >= wanted }
            try disk.cutPower()
            try daemon.kill()
            try load.forgetInFlight(isReceiving: false)
            try disk.restorePower()

            daemon = try Daemon(on: installation)
            let again = try daemon.connect()
            try again.awaitMoves()
            try load.check(on: again)
            #expect(try again.dropOriginals() == true)
            try load.check(on: again)
            try load.connect(4, to: daemon)
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// A server that stores something else than it is given: the collection stays where it is.
    @Test func aServerThatChangesACopyFailsTheMove() throws {
        let server = try PostgreSQLServer.shared()
        let function = "CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS"
        #expect(try server.query("\(function) 'BEGIN new.item := ''{}''; RETURN new; END'") != nil)
        let trigger = "CREATE TRIGGER mine BEFORE INSERT ON {table} FOR EACH ROW"
        let setup = "\(trigger) WHEN (new.id = '7') EXECUTE FUNCTION changed()"
        let options = #"connection: "\#(server.connection)", schema: changing, table_setup: "\#(setup)""#
        let backend = "cluster: {plugin: postgresql, options: {\(options)}}"
        let daemon = try Daemon(MovePlaces.configuration("{backend: main}", backends: backend))
        let connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        try daemon.installation.configure(MovePlaces.configuration("{backend: cluster}", backends: backend))
        #expect(try connection.reloadMoving() == ["c"])
        let moves = try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        let reason = try #require(moves[0]["reason"]?.string)
        #expect(reason.contains(#"record "7""#) && reason.contains("backend cluster"), "\(reason)")
        #expect(try connection.describe()["backend"]?.string == "main")
        #expect(try connection.describe()["count"]?.integer == 100)
        #expect(try connection.update("c", "7", "7").result != nil)

        #expect(try server.query("DROP TRIGGER mine ON changing.c") != nil)
        #expect(try connection.reloadMoving() == [], "it has begun already")
        try connection.awaitMoves()
        #expect(try connection.describe()["backend"]?.string == "cluster")
        #expect(try connection.describe()["count"]?.integer == 100)
        #expect(try connection.item("c", "7") == "7")
    }

    /// A server that is killed while records are copied to it: no client notices.
    @Test func aKilledServerSuspendsAMove() throws {
        let server = try PostgreSQLServer()
        let backend = #"cluster: {plugin: postgresql, options: {connection: "\#(server.connection)"}}"#
        let daemon = try Daemon(MovePlaces.configuration("{backend: main}", backends: backend))
        let connection = try daemon.connect()
        let load = MoveLoad(records: 4000, depth: 2, seed: 4)
        try load.connect(2, to: daemon)
        try load.fill()
        try daemon.installation.configure(MovePlaces.configuration("{backend: cluster}", backends: backend))
        #expect(try connection.reloadMoving() == ["c"])
        func move(_ status: JSON) throws -> JSON { try #require(status["moves"]?.elements?.first, "it is over") }
        try load.run(connection) { try (move($0)["copied"]?.integer ?? 0) > 0 }
        try server.kill()
        try load.run(connection) { try move($0)["phase"]?.string == "suspended" }
        try server.start()
        try load.run(connection) { try #require($0["moves"]?.elements).isEmpty }
        try load.drain()
        try load.check(on: connection)
        #expect(try connection.describe()["backend"]?.string == "cluster")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
