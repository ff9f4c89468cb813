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
        let daemon = try Daemon(on: Self.installation("{open_hangs: 1}", limits: "request_timeout: 5s"))
        #expect(daemon.startTime < .seconds(60))
        let connection = try daemon.connect()
        #expect(try connection.backend("slow")?["state"]?.string == "opening")
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.create("slow", "a", "1").error?.name == "unavailable")
        #expect(try connection.reload().isEmpty)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aReloadBringsItInAllTheSame() throws {
        let daemon = try Daemon(on: Self.installation("{}", limits: "request_timeout: 60s"))
        let connection = try daemon.connect()
        #expect(try connection.create("slow", "a", "1").result != nil)
        try daemon.installation.configure(Self.configuration("{open_hangs: 1}", limits: "request_timeout: 60s"))
        #expect(
            try connection.reload(force: true)
                == ["backend slow: options changed", "backend slow: not open yet, its requests wait"])
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try daemon.stop() == .exited(0))
    }

    /// Neither a write that hangs in the daemon nor a read that hangs in a child concerns collections elsewhere.
    @Test(arguments: ["write", "read"])
    func dropsMovesAndReloadsOfOthersDoNotWaitForIt(what: String) throws {
        func configuration(_ rules: String) -> Configuration {
            let slow = what == "write" ? "options: {gated: 1}" : "isolation: process, limits: {call_timeout: 120s}"
            return Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                    slow: {plugin: scripted, \(slow)}
                    """, collections: "slow: {backend: slow}\n\(rules)\n\"*\": {backend: main}",
                limits: "request_timeout: 120s")
        }
        let installation = try Installation(configuration(""))
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=CRUDD_CAN_READ_CONCURRENTLY"],
            to: "\(installation.pluginDirectory)/scripted.so")
        let daemon = try Daemon(on: installation)
        let (connection, hanging) = (try daemon.connect(), try daemon.connect())
        for name in ["dropped", "moved"] { #expect(try connection.create(name, "a", "1").result != nil) }
        let gate = try ReadGate(at: "\(installation.path)/gate")
        if what == "read" {
            #expect(try connection.create("slow", gate.id, "1").result != nil)
            try hanging.sendFrame(Connection.request("record.read", Connection.params("slow", gate.id), id: "1"))
            try gate.awaitRead()
        } else {
            try hanging.sendFrame(
                Connection.request("record.create", Connection.params("slow", "a", item: "1"), id: "1"))
            #expect(try connection.call("daemon.ping").result != nil)
        }
        #expect(
            try connection.call("collection.drop", #"{"collection":"dropped"}"#).result?["dropped"]?.boolean == true)
        try installation.configure(configuration("new: {backend: other}\nmoved: {backend: other}"))
        #expect(try connection.reloadMoving() == ["moved"])
        try connection.awaitMoves()
        #expect(try connection.describe("moved")["backend"]?.string == "other")
        #expect(try !hanging.hasSomethingToRead(), "it still hangs")
        try daemon.kill()
    }

    @Test func whatDoesNotFinishIsNotExchanged() throws {
        let daemon = try Daemon(on: Self.installation("{gated: 1}", limits: "request_timeout: 110s"))
        let connection = try daemon.connect()
        // Its gate is never opened.
        let writer = try daemon.connect()
        try writer.sendFrame(Connection.request("record.create", Connection.params("slow", "a", item: "1"), id: "1"))
        #expect(try writer.call("daemon.ping").result != nil)
        try daemon.installation.configure(Self.configuration("{}", limits: "request_timeout: 110s"))
        let error = try connection.reloadInVain()
        #expect(error.name == "unavailable")
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.backend("slow")?["state"]?.string == "ready")
        try daemon.kill()
    }
}
