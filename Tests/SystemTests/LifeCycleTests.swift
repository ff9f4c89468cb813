import CRUDTestSupport
import Glibc
import Testing

/// From the first breath to the last.
@Suite struct LifeCycleTests {
    @Test func startsSoonAndRestsSmall() throws {
        let daemon = try Daemon()
        // Generous: debug code on busy cores. The strict figures belong to the bench.
        #expect(daemon.startTime < .seconds(20))
        #expect(try daemon.connect().isUsable())
        #expect(try daemon.residentBytes < 100 << 20)
    }

    @Test func endsWellWithNothingToDo() throws {
        let daemon = try Daemon()
        let idle = try (0..<10).map { _ in try daemon.connect() }
        #expect(try idle[0].isUsable())
        #expect(try daemon.stop() == .exited(0))
        for connection in idle { #expect(try connection.receiveFrame() == nil) }
    }

    @Test(arguments: [1, 4])
    func repliesToWhatIsInFlightBeforeItEnds(loops: Int) throws {
        var daemon = try Daemon(Configuration(loops: loops))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "first", "0").result != nil)
        var bytes: [UInt8] = []
        for number in 0..<200 {
            let params = Connection.params("c", "\(number)", item: "\(number)")
            bytes += Connection.frame(Connection.request("record.create", params, id: "\(number)"))
        }
        try connection.send(bytes)
        daemon.process.signal(SIGTERM)
        var created: Set<String> = []
        var refused: Set<String> = []
        while let frame = try connection.receiveFrame() {
            let reply = try Reply(JSON(parsing: frame))
            if reply.result != nil {
                created.insert(reply.id.text)
            } else {
                #expect(reply.error?.name == "unavailable")
                refused.insert(reply.id.text)
            }
        }
        #expect(created.count + refused.count == 200, "requests that the daemon had before the signal have no reply")
        #expect(try daemon.process.waitForExit() == .exited(0))

        daemon = try daemon.restarted()
        let survivors = try daemon.connect()
        for id in created { #expect(try survivors.item("c", id) == id) }
        for id in refused { #expect(try survivors.exists("c", id) == false) }
    }

    @Test func endsEvenIfAPeerDoesNotRead() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "\"" + String(repeating: "x", count: 1 << 20) + "\"").result != nil)
        let read = Connection.frame(Connection.request("record.read", Connection.params("c", "a"), id: "1"))
        for _ in 0..<20 { try connection.send(read) }
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func sigintEndsItTheSameWay() throws {
        let daemon = try Daemon()
        daemon.process.signal(SIGINT)
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(!Files.exists(daemon.socketPath))
    }

    @Test func tellsTheServiceManager() throws {
        let daemon = try Daemon()
        #expect(try daemon.notifications.wait { $0.contains { $0.hasPrefix("STATUS=") } })
        #expect(daemon.notifications.received.count { $0 == "READY=1" } == 1)
        #expect(!daemon.notifications.received.contains("STOPPING=1"))
        #expect(!daemon.notifications.received.contains("WATCHDOG=1"))
        #expect(try daemon.stop() == .exited(0))
        #expect(daemon.notifications.received.contains("STOPPING=1"))
    }

    @Test func runsWithoutAServiceManager() throws {
        let daemon = try Daemon()
        try daemon.stop()
        let crudd = try BuildProducts.path(of: "crudd")
        let process = try ChildProcess(crudd, ["--config", daemon.installation.configurationFile], descriptors: [])
        let deadline = Deadline()
        // Between its bind(2) and its listen(2) the socket is there and refuses.
        var connection = try? daemon.connect()
        while connection == nil {
            try #require(try process.isRunning)
            try #require(!deadline.hasPassed)
            connection = try? daemon.connect()
        }
        #expect(try connection?.isUsable() == true)
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == .exited(0))
    }

    @Test func remembersInTheServiceManagersStateDirectory() throws {
        let text = Configuration().text.split(separator: "\n").filter { !$0.hasPrefix("state_directory") }
        let installation = try Installation(text: text.joined(separator: "\n") + "\n")
        let place = "\(installation.path)/elsewhere"
        try Files.makeDirectory(place, mode: 0o700)
        let daemon = try Daemon(on: installation, environment: ["STATE_DIRECTORY": place])
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        #expect(try daemon.stop() == .exited(0))
        #expect(try !Files.names(in: place).isEmpty)
    }

    @Test func logsNothingOfWhatIsStored() throws {
        let daemon = try Daemon(on: Installation(text: Configuration().text + "log: {level: trace}\n"))
        let connection = try daemon.connect()
        let item = #"{"secret":"xyzzy plugh"}"#
        #expect(try connection.create("c", "a", item).result != nil)
        _ = try connection.create("c", "a", item)
        _ = try connection.update("c", "a", item, ifRevision: "xyzzy plugh")
        _ = try connection.call("record.create", #"{"collection":"c","id":"","item":"xyzzy plugh"}"#)
        try connection.sendFrame(#"{"jsonrpc":"2.0","id":1,"method":"xyzzy plugh","params":["xyzzy plugh"],}"#)
        _ = try connection.receive()
        try daemon.stop()
        #expect(!daemon.log.contains("plugh"))
    }

    @Test func tellsVersionAndUsage() throws {
        let crudd = try BuildProducts.path(of: "crudd")
        let version = try Command.run(crudd, ["--version"])
        #expect(version.status == .exited(0))
        #expect(version.output.contains { $0.isNumber })
        let help = try Command.run(crudd, ["--help"])
        #expect(help.status == .exited(0))
        for option in ["--config", "--check", "--force", "--version"] { #expect(help.output.contains(option)) }
        #expect(try Command.run(crudd, ["--no-such-option"]).status == .exited(64))
    }
}
