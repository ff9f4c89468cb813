import CRUDTestSupport
import Glibc
import Testing

/// Power cuts and lost servers while clients write, records expire and followers read: each follower continues at its
/// cursor, and ends with what is in the collection.
@Suite(.serialized) struct FeedDurabilityTests {
    @Test(
        .enabled(if: PowerCutDisk.isAvailable, "needs root and loop devices"),
        arguments: [
            "isolation: inline, plugin: sqlite, options: {path: $DISK/main.sqlite}",
            "isolation: process, plugin: sqlite, options: {path: $DISK/main.sqlite}",
            "plugin: memory, options: {log: $DISK/log}",
            "plugin: postgresql, options: {connection: $SERVER}",
        ])
    func powerIsCut(backend: String) throws {
        let disk = try PowerCutDisk()
        let server = backend.contains("$SERVER") ? try disk.makeServer() : nil
        try Files.makeDirectory("\(disk.path)/state", mode: 0o700)
        let text = Configuration(backends: "main: {\(backend)}", collections: "c: {backend: main, changes: true}").text
            .replacing("$DIRECTORY/state", with: "$DISK/state").replacing("$DISK", with: disk.path)
            .replacing("$SERVER", with: JSON.quote(server?.connection ?? ""))
        let installation = try Installation(text: text)
        let load = FeedLoad(seed: 5)
        for writes in [100, 400, 700] {
            let daemon = try Daemon(on: installation)
            try load.connect(to: daemon)
            try load.run { load.writes >= writes }
            try disk.cutPower()
            load.disconnect()
            try daemon.kill()
            try server?.stop()
            try disk.restorePower()
            try server?.start(settings: PowerCutDisk.serverSettings)
        }
        let daemon = try Daemon(on: installation)
        try load.connect(to: daemon)
        try load.finish(daemon.connect())
        #expect(load.expiredCursors == 0)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: ["inline", "process"])
    func serverIsKilled(isolation: String) throws {
        let server = try PostgreSQLServer()
        let options = "{connection: \"\(server.connection)\"}"
        let daemon = try Daemon(
            Configuration(
                backends: "main: {plugin: postgresql, isolation: \(isolation), options: \(options)}",
                collections: "c: {backend: main, changes: true}"))
        let load = FeedLoad(seed: 6)
        let administrator = try daemon.connect()
        for writes in [100, 400] {
            try load.connect(to: daemon)
            try load.run { load.writes >= writes }
            try server.kill()
            load.disconnect()
            try server.start()
            let deadline = Deadline()
            while try administrator.upsert("c", "b0", "0").result == nil { try #require(!deadline.hasPassed) }
        }
        try load.connect(to: daemon)
        try load.finish(administrator)
        #expect(load.expiredCursors == 0)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Expiry times outlive a power cut with their records, and end them as if nothing had happened.
    @Test(
        .enabled(if: PowerCutDisk.isAvailable, "needs root and loop devices"),
        arguments: [
            "plugin: sqlite, options: {path: $DISK/main.sqlite}",
            "plugin: filesystem, options: {directory: $DISK/files}",
            "plugin: userdefaults, options: {suite: com.example.test}",
            "plugin: memory, options: {log: $DISK/log}",
            "plugin: postgresql, options: {connection: $SERVER}",
        ])
    func expiryTimesAreThere(adapter: String) throws {
        let disk = try PowerCutDisk()
        let server = adapter.contains("$SERVER") ? try disk.makeServer() : nil
        let backend = adapter.replacing("$DISK", with: disk.path)
            .replacing("$SERVER", with: JSON.quote(server?.connection ?? ""))
        let installation = try Installation(Configuration(backends: "main: {\(backend)}"))
        var daemon = try Daemon(on: installation, environment: disk.environment)
        var connection = try daemon.connect()
        for (id, ttl) in [("long", "1000"), ("short", "0.3")] {
            let params = #"{"collection":"c","id":"\#(id)","item":1,"ttl":\#(ttl)}"#
            #expect(try connection.call("record.create", params).result != nil)
        }
        let expiry = try connection.read("c", "long").result?["expiresAt"]?.integer
        try disk.cutPower()
        connection.close()
        try daemon.kill()
        try server?.stop()
        try disk.restorePower()
        try server?.start(settings: PowerCutDisk.serverSettings)
        daemon = try Daemon(on: installation, environment: disk.environment)
        connection = try daemon.connect()
        #expect(try connection.read("c", "long").result?["expiresAt"]?.integer == expiry && expiry != nil)
        let deadline = Deadline()
        while try connection.exists("c", "short") == true { try #require(!deadline.hasPassed) }
        #expect(try connection.call("record.count", #"{"collection":"c"}"#).result?["count"]?.integer == 1)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
