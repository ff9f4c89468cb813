import CRUDTestSupport
import Testing

/// `daemon.configuration` and `daemon.logLevel`.
@Suite struct SettingTests {
    /// By key: value and source.
    private static func settings(_ connection: Connection) throws -> [String: [String]] {
        let settings = try #require(try connection.call("daemon.configuration").result?["settings"]?.elements)
        let pairs = settings.map { setting in
            let member = { (name: String) in setting[name]?.string ?? "?" }
            return (member("key"), [member("value"), member("source")])
        }
        return Dictionary(pairs) { $0 + $1 }
    }

    @Test func everySettingHasASource() throws {
        let text = """
            socket: {path: $DIRECTORY/crudd.sock}
            state_directory: $DIRECTORY/state
            plugins: {directories: [$DIRECTORY/plugins]}
            backends:
              main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
              child: {plugin: memory, isolation: process, limits: {memory: 64MiB}}
            collections:
              "*": {backend: main, indexes: [a.b, "x y"], changes: true}
            access:
              - {users: [0], allow: [read, write, admin]}
              - {collections: ["c*"], allow: [read], limits: {requests_per_second: 1000, bytes: 1KiB}}
            loops: 2
            limits: {frame_bytes: 1MiB}
            log: {level: notice}

            """
        let daemon = try Daemon(on: try Installation(text: text))
        let connection = try daemon.connect()
        let settings = try Self.settings(connection)
        let path = daemon.installation.path
        let expected: [String: [String]] = [
            "socket.path": ["\(path)/crudd.sock", "file"], "socket.mode": ["0660", "default"],
            "state_directory": ["\(path)/state", "file"], "plugins.directories": ["[\(path)/plugins]", "file"],
            "backends.main.plugin": ["sqlite", "file"], "backends.main.isolation": ["inline", "default"],
            "backends.main.options": [#"{"path":"\#(path)/main.sqlite"}"#, "file"],
            "backends.main.cache": ["true", "default"], "backends.child.limits.memory": ["64MiB", "file"],
            "backends.child.limits.call_timeout": ["none", "default"], "backends.child.options": ["{}", "default"],
            "collections.*.backend": ["main", "file"], "collections.*.format": ["json", "default"],
            "collections.*.indexes": [#"[a.b, "x y"]"#, "file"], "collections.*.move": ["false", "default"],
            "collections.*.changes": ["{retention: 7d}", "file"],
            "access.0": ["{users: [0], allow: [read, write, admin]}", "file"],
            "access.1": [
                #"{collections: ["c*"], allow: [read], limits: {requests_per_second: 1000, bytes: 1KiB}}"#, "file",
            ],
            "loops": ["2", "file"], "cache.bytes": ["64MiB", "default"], "busy_poll": ["200us", "default"],
            "limits.frame_bytes": ["1MiB", "file"], "limits.item_bytes": ["512KiB", "default"],
            "limits.idle_timeout": ["0s", "default"], "log.level": ["notice", "file"],
            "log.slow": ["100ms", "default"],
        ]
        for (key, value) in expected { #expect(settings[key] == value, "\(key)") }
        #expect(settings.values.allSatisfy { $0.count == 2 }, "no key twice")

        try daemon.installation.configure(text: text.replacing("loops: 2", with: "loops: 1"))
        #expect(try connection.reload() == ["loops: stays 2 until the daemon is restarted, then 1"])
        #expect(try Self.settings(connection)["loops"] == ["2", "start"])
        let table = try Command.run(
            BuildProducts.path(of: "crudctl"), ["config", "-o", "table"],
            environment: ["CRUDD_SOCKET": daemon.socketPath])
        #expect(table.output.contains("log.slow "), "\(table)")
    }

    /// Neither of both loses what the other one has changed; what changes nothing leaves the level as it is.
    @Test func aLogLevelBesideReloads() throws {
        let configurations = [10, 20].map { Configuration(limits: "batch: \($0)", loops: 2) }
        let daemon = try Daemon(configurations[0])
        let (reloading, other) = (try daemon.connect(), try daemon.connect())
        for round in 1...20 {
            try daemon.installation.configure(configurations[round % 2])
            let level = ["debug", "trace", "error"][round % 3]
            try reloading.sendFrame(Connection.request("daemon.reload", id: "1"))
            try other.sendFrame(Connection.request("daemon.logLevel", #"{"level":"\#(level)"}"#, id: "1"))
            let changes = try reloading.receive().result?["changes"]?.elements?.compactMap(\.string)
            #expect(changes?.contains { $0.hasPrefix("limits.batch: from") } == true, "\(changes ?? [])")
            #expect(try other.receive().result?["level"]?.string == level)
            let settings = try Self.settings(other)
            #expect(settings["limits.batch"] == ["\((round % 2 + 1) * 10)", "file"])
            // The one that came later is in force.
            let inForce = try #require(settings["log.level"])
            #expect(inForce == ["info", "default"] || inForce == [level, "logLevel"], "\(inForce)")
        }
        #expect(try other.call("daemon.logLevel", #"{"level":"error"}"#).result != nil)
        let dryRun = try reloading.call("daemon.reload", #"{"dryRun":true}"#)
        #expect(dryRun.result?["changes"]?.text == #"["log.level: from error to info"]"#, "\(dryRun)")
        try daemon.installation.configure(text: "unknown: 1\n")
        _ = try reloading.reloadInVain()
        #expect(try Self.settings(other)["log.level"] == ["error", "logLevel"])
        try daemon.installation.configure(configurations[0])
        #expect(try reloading.reload() == ["log.level: from error to info"])
    }

    @Test func theLogLevelLastsUntilTheNextReload() throws {
        let daemon = try Daemon(Configuration(loops: 2))
        let connections = try (0..<4).map { _ in try daemon.connect() }
        func set(_ level: String) throws -> Reply {
            try connections[0].call("daemon.logLevel", #"{"level":"\#(level)"}"#)
        }
        for connection in connections { #expect(try connection.call("daemon.ping").result != nil) }
        #expect(!daemon.log.contains("daemon.ping"))
        #expect(try set("trace").result?.text == #"{"level":"trace","former":"info"}"#)
        for connection in connections { #expect(try connection.call("daemon.ping").result != nil) }
        #expect(daemon.log.split(separator: "\n").count { $0.contains("daemon.ping") } == 4, "in every loop")
        #expect(try Self.settings(connections[1])["log.level"] == ["trace", "logLevel"])
        #expect(try set("critical").result?["former"]?.string == "trace")
        #expect(try connections[0].reload() == ["log.level: from critical to info"])
        #expect(try Self.settings(connections[1])["log.level"] == ["info", "default"])
        let error = try set("loud").error
        #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "level")
        #expect(error?.message.contains("trace, debug, info") == true)
        // An act is logged by the level when it is over, later by another thread.
        #expect(try set("debug").result != nil)
        try daemon.stop()
        #expect(daemon.log.contains("daemon.logLevel to debug: ok"))
    }
}
