import CRUDTestSupport
import Glibc
import Testing

/// `WATCHDOG=1` says that every event loop is alive.
@Suite struct WatchdogTests {
    @Test(arguments: [1, 3])
    func everyLoopFeedsIt(loops: Int) throws {
        let daemon = try Daemon(
            on: Installation(Configuration(loops: loops)), environment: ["WATCHDOG_USEC": "200000"])
        #expect(try daemon.notifications.wait { $0.count { $0 == "WATCHDOG=1" } >= 3 })
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func thatOfAnotherProcessIsNotFed() throws {
        let daemon = try Daemon(
            on: Installation(), environment: ["WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"])
        let connection = try daemon.connect()
        let start = ContinuousClock.now
        while start.duration(to: .now) < .milliseconds(200) { #expect(try connection.isUsable()) }
        #expect(!daemon.notifications.received.contains("WATCHDOG=1"))
    }

    /// One loop hangs in a plugin, the other serves.
    @Test func isNotFedWhileALoopHangs() throws {
        let installation = try Installation(
            Configuration(
                backends: "fast: {plugin: scripted, options: {}}", collections: "\"*\": {backend: fast}", loops: 2,
                cache: "0B"))
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=(CRUDD_CAN_READ_CONCURRENTLY|CRUDD_CAN_READ_FAST)"],
            to: "\(installation.pluginDirectory)/scripted.so")
        let gate = "\(installation.path)/gate"
        #expect(mkfifo(gate, 0o600) == 0)
        let daemon = try Daemon(on: installation, environment: ["WATCHDOG_USEC": "100000"])
        let connections = try (0..<2).map { _ in try daemon.connect() }
        for connection in connections {
            #expect(try connection.upsert("c", "a", "1").result != nil)
            #expect(try connection.item("c", "a") == "1")
        }
        let read = Connection.request("record.read", Connection.params("c", "wait:\(gate)"), id: "1")
        try connections[1].sendFrame(read)
        // A writer finds the gate only when somebody waits at it.
        var writer: CInt = -1
        let deadline = Deadline()
        while writer < 0 {
            try #require(!deadline.hasPassed)
            writer = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        }
        let release = Descriptor(owning: writer)
        func count() -> Int { daemon.notifications.received.count { $0 == "WATCHDOG=1" } }
        var counts = (-1, count())
        // What had been due before the loop hung comes in the first interval, on a busy machine in a later one.
        for _ in 0..<10 where counts.0 != counts.1 {
            let start = ContinuousClock.now
            while start.duration(to: .now) < .milliseconds(200) { #expect(try connections[0].isUsable()) }
            counts = (counts.1, count())
        }
        #expect(counts.0 == counts.1)
        _ = consume release
        #expect(try connections[1].receive().error?.name == "record_not_found")
        #expect(try daemon.notifications.wait { $0.count { $0 == "WATCHDOG=1" } > counts.1 })
    }

    /// A message that nobody takes waits for a second; no request does.
    @Test func aServiceManagerThatDoesNotReadBlocksNoLoop() throws {
        let daemon = try Daemon(
            on: Installation(Configuration(loops: 1)), environment: ["WATCHDOG_USEC": "20000"])
        let connection = try daemon.connect()
        let sender = try Descriptor.datagramSocket()
        let sent = try UnixAddress.with(daemon.notifications.path) { address, length in
            var count = 0
            while sendto(sender.number, "X=1", 3, Int32(MSG_DONTWAIT), address, length) == 3 { count += 1 }
            return count
        }
        #expect(sent > 0)
        // One that waited would reply once a second. In one of the rounds the machine is busy with nothing else.
        let counts = try (0..<5).map { _ throws in
            let end = Deadline(.seconds(1))
            var count = 0
            while !end.hasPassed {
                #expect(try connection.isUsable())
                count += 1
            }
            return count
        }
        #expect(try #require(counts.max()) > 20, "\(counts)")
    }
}
