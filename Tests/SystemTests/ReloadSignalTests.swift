import CRUDTestSupport
import Glibc
import Testing

/// SIGHUP, and what the service manager hears of a reload.
@Suite struct ReloadSignalTests {
    @Test func sighupReloadsAndTellsTheServiceManager() throws {
        let daemon = try Daemon()
        try daemon.installation.configure(Configuration(limits: "batch: 7"))
        let before = try Self.microseconds()
        daemon.process.signal(SIGHUP)
        #expect(try daemon.notifications.wait { $0.count { $0 == "READY=1" } == 2 })
        let datagrams = daemon.notifications.datagrams
        let reloading = try #require(datagrams.firstIndex { $0.first == "RELOADING=1" })
        #expect(datagrams[reloading].count == 2)
        let time = try #require(datagrams[reloading].last?.split(separator: "=").last.flatMap { Int($0) })
        #expect(datagrams[reloading][1].hasPrefix("MONOTONIC_USEC="))
        #expect(try (before...Self.microseconds()).contains(time))
        #expect(datagrams[(reloading + 1)...].contains { $0.first == "READY=1" })
        #expect(try daemon.connect().call("session.hello").result?["limits"]?["batch"]?.integer == 7)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func isReadyAgainAfterARefusal() throws {
        let daemon = try Daemon()
        try daemon.installation.configure(text: "backends: {}\n")
        daemon.process.signal(SIGHUP)
        #expect(try daemon.notifications.wait { $0.count { $0 == "READY=1" } == 2 })
        #expect(daemon.notifications.received.contains { $0.hasPrefix("STATUS=") && $0.contains("crudd.yaml:1:") })
        #expect(daemon.log.contains("crudd.yaml:1:11"))
        #expect(try daemon.connect().isUsable())
        try daemon.installation.configure(Configuration())
        daemon.process.signal(SIGHUP)
        #expect(try daemon.notifications.wait { $0.count { $0 == "READY=1" } == 3 })
        #expect(daemon.notifications.received.last == "STATUS=Serving 1 backend")
    }

    /// Signals of one kind that come together may count as one; none gets lost after the last change of the file.
    @Test func theLastSignalCounts() throws {
        let daemon = try Daemon()
        for number in 1...50 {
            try daemon.installation.configure(Configuration(limits: "batch: \(number)"))
            daemon.process.signal(SIGHUP)
            _ = daemon.notifications.received
        }
        let connection = try daemon.connect()
        let deadline = Deadline()
        while try connection.call("session.hello").result?["limits"]?["batch"]?.integer != 50 {
            try #require(!deadline.hasPassed)
            // What is not read holds up whoever notifies.
            _ = daemon.notifications.received
        }
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func stoppingDuringReloadsEndsWell() throws {
        for number in 0..<10 {
            let daemon = try Daemon()
            let connection = try daemon.connect()
            #expect(try connection.create("c", "a", "1").result != nil)
            let mode = number.isMultiple(of: 2) ? "off" : "normal"
            try daemon.installation.configure(
                Configuration(
                    backends: "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite, synchronous: \(mode)}}"))
            daemon.process.signal(SIGHUP)
            #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        }
    }

    private static func microseconds() throws -> Int {
        var time = timespec()
        guard clock_gettime(CLOCK_MONOTONIC, &time) == 0 else { throw Failure.system("clock_gettime") }
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}
