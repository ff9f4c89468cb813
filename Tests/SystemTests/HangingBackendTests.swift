import CRUDTestSupport
import Testing

/// A backend that hangs while it is opened, or while it works, delays nobody but those who ask it.
@Suite struct HangingBackendTests {
    private static func installation(_ options: String, limits: String? = nil) throws -> Installation {
        let installation = try Installation(configuration(options, limits: limits))
        try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        return installation
    }

    private static func configuration(_ options: String, limits: String? = nil) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                slow: {plugin: scripted, options: \(options)}
                """, collections: "slow: {backend: slow}\n\"*\": {backend: main}", limits: limits)
    }

    @Test func theDaemonIsReadyAndServesTheOthers() throws {
        let daemon = try Daemon(on: Self.installation("{open_hangs: 1}", limits: "request_timeout: 300ms"))
        #expect(daemon.startTime < .seconds(10))
        let connection = try daemon.connect()
        #expect(try connection.backend("slow")?["state"]?.string == "opening")
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.create("slow", "a", "1").error?.name == "unavailable")
        #expect(try connection.reload().isEmpty)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aReloadBringsItInAllTheSame() throws {
        let daemon = try Daemon(on: Self.installation("{}", limits: "request_timeout: 5s"))
        let connection = try daemon.connect()
        #expect(try connection.create("slow", "a", "1").result != nil)
        try daemon.installation.configure(Self.configuration("{open_hangs: 1}", limits: "request_timeout: 5s"))
        #expect(
            try connection.reload(force: true)
                == ["backend slow: options changed", "backend slow: not open yet, its requests wait"])
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func whatDoesNotFinishIsNotExchanged() throws {
        let daemon = try Daemon(on: Self.installation("{gated: 1}", limits: "request_timeout: 60s"))
        let connection = try daemon.connect()
        // Its gate is never opened.
        let writer = try daemon.connect()
        try writer.sendFrame(Connection.request("record.create", Connection.params("slow", "a", item: "1"), id: "1"))
        #expect(try writer.call("daemon.ping").result != nil)
        try daemon.installation.configure(Self.configuration("{}", limits: "request_timeout: 60s"))
        let error = try connection.reloadInVain()
        #expect(error.name == "unavailable")
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.backend("slow")?["state"]?.string == "ready")
        try daemon.kill()
    }
}
