import CRUDTestSupport
import Glibc
import Testing

/// SIGTERM, at every moment.
@Suite struct ShutdownTests {
    private static func installation(_ options: String, limits: String? = nil) throws -> Installation {
        let installation = try Installation(
            Configuration(
                backends: "slow: {plugin: scripted, options: \(options)}", collections: "\"*\": {backend: slow}",
                limits: limits))
        try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        return installation
    }

    @Test func beforeItServesItLeavesNoSocketBehind() throws {
        let installation = try Self.installation("{open_hangs: 1}")
        let crudd = try BuildProducts.path(of: "crudd")
        let process = try ChildProcess(crudd, ["--config", installation.configurationFile], descriptors: [])
        let deadline = Deadline()
        while !Files.exists(installation.socketPath) {
            try #require(try process.isRunning)
            try #require(!deadline.hasPassed)
        }
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == .exited(0))
        #expect(!Files.exists(installation.socketPath))
    }

    @Test func whatDoesNotFinishHasAReplyWhenItsTimeIsOver() throws {
        // Longer than a daemon waits for peers that do not read.
        let daemon = try Daemon(on: Self.installation("{gated: 1}", limits: "request_timeout: 11s"))
        let connection = try daemon.connect()
        // Its gate is never opened.
        try connection.sendFrame(Connection.request("record.create", Connection.params("c", "a", item: "1"), id: "1"))
        let deadline = Deadline()
        while !daemon.log.contains("scripted waits") { try #require(!deadline.hasPassed) }
        daemon.process.signal(SIGTERM)
        #expect(try connection.receive().error?.name == "outcome_unknown")
        #expect(try daemon.process.waitForExit() == .exited(0))
        for line in ["SIGTERM", "backend slow has not finished its requests"] {
            #expect(daemon.log.contains(line), "\(line)")
        }
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"))
    func theLogTellsWhoDidWhat() throws {
        let text = Configuration(socket: #"mode: "0666""#, access: "- {users: [0], allow: [read, write]}").text
        let daemon = try Daemon(on: Installation(text: text + "log: {level: trace}\n"))
        let connection = try daemon.connect()
        #expect(try connection.create("clients", "a", "1").result != nil)
        #expect(try connection.call("session.hello", #"{"client":"\u001B[2Jdemo\n"}"#).result != nil)
        connection.close()
        let other = try daemon.connect(as: Peer(user: 65534, group: 65534))
        #expect(try other.read("clients", "a").error?.name == "permission_denied")
        #expect(try daemon.connect().reload().isEmpty)
        #expect(try daemon.stop() == .exited(0))
        for line in [
            "session 1 of uid 0: connected", #"session 1 of uid 0: record.create on collection "clients""#,
            #"the client is "\u{1B}[2Jdemo\n""#, "session 1 of uid 0: closed",
            #"session 2 of uid 65534: record.read on collection "clients" is denied"#,
            "the configuration was reloaded", "SIGTERM",
        ] {
            #expect(daemon.log.contains(line), "\(line)")
        }
    }
}
