import CRUDTestSupport
import Glibc
import Testing

/// The metrics of sessions and of the process.
@Suite struct SessionMetricTests {
    // MARK: Sessions

    @Test func sessionsAreCounted() throws {
        let daemon = try Daemon(Configuration(limits: "sessions_per_user: 2", loops: 3))
        // The user of the daemon is an administrator: eight more are kept free.
        let sessions = try (0..<10).map { _ in try daemon.connect() }
        for session in sessions { #expect(try session.isUsable()) }
        for _ in 0..<3 { #expect(try daemon.connect().receive().error?.name == "limit_exceeded") }
        var samples = try sessions[0].metrics()
        #expect(samples["crudd_sessions{}"] == 10)
        #expect(samples["crudd_sessions_opened_total{}"] == 10)
        #expect(samples["crudd_sessions_refused_total{}"] == 3)
        for session in sessions.suffix(4) { session.close() }
        try sessions[0].awaitMetric("crudd_sessions", 6)
        #expect(try daemon.connect().isUsable())
        samples = try sessions[1].metrics()
        #expect(samples["crudd_sessions_opened_total{}"] == 11)
        #expect(samples["crudd_sessions_refused_total{}"] == 3)
    }

    /// A connection that the event loop cannot watch was never a session.
    @Test func whatTheKernelDoesNotWatchIsRefused() throws {
        let installation = try Installation(Configuration(loops: 3))
        let (shim, fault) = ("\(installation.path)/full-epoll.so", "\(installation.path)/full")
        try CompiledPlugin.compile("full-epoll.c", to: shim)
        let daemon = try Daemon(on: installation, environment: ["LD_PRELOAD": shim, "FULL_EPOLL": fault])
        let connection = try daemon.connect()
        #expect(try connection.isUsable())
        try Files.write("", to: fault)
        for _ in 0..<5 {
            let error = try daemon.connect().receive().error
            #expect(error?.name == "unavailable" && error?.message.contains("no room for another session") == true)
        }
        Files.remove(fault)
        let next = try daemon.connect()
        #expect(try next.isUsable())
        let samples = try connection.metrics()
        #expect(samples["crudd_sessions{}"] == 2)
        #expect(samples["crudd_sessions_opened_total{}"] == 2)
        #expect(samples["crudd_sessions_refused_total{}"] == 5)
    }

    @Test func connectionsBeyondTheDescriptorsAreRefused() throws {
        let daemon = try Daemon(Configuration(loops: 3))
        let connection = try daemon.connect()
        #expect(try connection.isUsable())
        try Self.limitDescriptors(of: daemon, to: daemon.descriptorCount)
        // Numbers below the limit may be free: some are accepted.
        var (accepted, refused) = (0, 0)
        var sessions: [Connection] = []
        while refused < 3, accepted < 50 {
            let session = try daemon.connect()
            try session.sendFrame(Connection.request("daemon.ping", id: "1"))
            let reply = try session.receive()
            if reply.result != nil { accepted += 1 } else { refused += 1 }
            #expect(reply.error == nil || reply.error?.name == "unavailable")
            sessions.append(session)
        }
        try Self.limitDescriptors(of: daemon, to: 1000)
        let samples = try connection.metrics()
        #expect(refused == 3 && samples["crudd_sessions_refused_total{}"] == 3)
        #expect(samples["crudd_sessions_opened_total{}"] == Double(1 + accepted))
    }

    /// Sets the soft limit.
    private static func limitDescriptors(of daemon: Daemon, to count: Int) throws {
        let outcome = try Command.run("prlimit", ["--pid", "\(daemon.process.pid)", "--nofile=\(count):"])
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }

    // MARK: Bytes

    /// Frames with their headers, of sessions that have ended too.
    @Test func bytesAreCounted() throws {
        let daemon = try Daemon(Configuration(loops: 3))
        var (received, sent) = (0, 0)
        func exchange(_ request: String, _ connection: Connection) throws -> JSON {
            let frame = Connection.frame(request)
            try connection.send(frame)
            let reply = try #require(try connection.receiveFrame())
            received += frame.count
            sent += 4 + reply.count
            return try #require(try Reply(JSON(parsing: reply)).result)
        }
        let connections = try (0..<6).map { _ in try daemon.connect() }
        for (number, connection) in connections.enumerated() {
            let item = "\"\(String(repeating: "x", count: 100 * number))\""
            for id in 0..<20 {
                let params = Connection.params("c", "\(number)-\(id)", item: item)
                _ = try exchange(Connection.request("record.create", params, id: "1"), connection)
                let record = Connection.params("c", "\(number)-\(id)")
                _ = try exchange(Connection.request("record.read", record, id: "1"), connection)
            }
        }
        connections[4].close()
        connections[5].close()
        let deadline = Deadline()
        let status = Connection.request("daemon.status", id: "1")
        while try exchange(status, connections[0])["sessions"]?.integer != 4 {
            try #require(!deadline.hasPassed, "the sessions do not end")
        }
        let sentBefore = sent
        let metrics = try exchange(Connection.request("daemon.metrics", id: "1"), connections[0])
        let samples = try MetricSamples(try #require(metrics["text"]?.string))
        #expect(samples["crudd_received_bytes_total{}"] == Double(received))
        #expect(samples["crudd_sent_bytes_total{}"] == Double(sentBefore))
    }

    // MARK: Slow requests

    /// With a limit of a microsecond every request is slow; more of them than are kept.
    @Test func slowRequestsAreCounted() throws {
        let daemon = try Daemon(on: Installation(text: Configuration(loops: 3).text + "log: {slow: 1us}\n"))
        let connections = try (0..<3).map { _ in try daemon.connect() }
        for connection in connections {
            for id in 0..<60 { #expect(try connection.upsert("c", "\(id)", "1").result != nil) }
        }
        let samples = try connections[0].metrics()
        #expect(samples["crudd_slow_requests_total{}"] == 180)
        let patient = try Daemon(on: Installation(text: Configuration(loops: 3).text + "log: {slow: 0ms}\n"))
        let connection = try patient.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(try connection.metrics()["crudd_slow_requests_total{}"] == 0)
    }

    // MARK: The process

    @Test func theProcessIsAsTheKernelSaysIt() throws {
        let earliest = Double(time(nil)) - 1
        let daemon = try Daemon(Configuration(loops: 3))
        let latest = Double(time(nil)) + 1
        let connection = try daemon.connect()
        let version = try #require(try connection.call("session.hello").result?["version"]?.string)
        for id in 0..<500 { #expect(try connection.upsert("c", "\(id)", "1").result != nil) }
        try Self.limitDescriptors(of: daemon, to: 777)
        let before = try Self.cpuSeconds(of: daemon)
        let samples = try connection.metrics()
        let after = try Self.cpuSeconds(of: daemon)
        #expect(samples[#"crudd_build_info{version="\#(version)"}"#] == 1)
        #expect(samples["process_max_fds{}"] == 777)
        #expect(samples["process_open_fds{}"] == Double(try daemon.descriptorCount))
        #expect((earliest...latest).contains(samples["process_start_time_seconds{}"] ?? 0))
        // The kernel cuts both summands of its sum to ticks of 10 ms.
        #expect((before - 0.001...after + 0.021).contains(samples["process_cpu_seconds_total{}"] ?? -1))
        let memory = try Self.numbers("statm", of: daemon).map { $0 * Double(sysconf(CInt(_SC_PAGESIZE))) }
        #expect((memory[0] * 0.9...memory[0] * 1.1).contains(samples["process_virtual_memory_bytes{}"] ?? 0))
        #expect((memory[1] * 0.95...memory[1] * 1.05).contains(samples["process_resident_memory_bytes{}"] ?? 0))
    }

    /// User and system time, from `stat`; field 2, the name, has no spaces.
    private static func cpuSeconds(of daemon: Daemon) throws -> Double {
        let fields = try numbers("stat", of: daemon)
        return (fields[13] + fields[14]) / Double(sysconf(CInt(_SC_CLK_TCK)))
    }

    /// The fields of a file of the process; 0 for those that are no numbers.
    private static func numbers(_ file: String, of daemon: Daemon) throws -> [Double] {
        let text = String(decoding: try Files.read("/proc/\(daemon.process.pid)/\(file)"), as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).map { Double($0) ?? 0 }
    }
}
