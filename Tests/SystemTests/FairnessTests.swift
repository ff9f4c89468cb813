import CRUDTestSupport
import Glibc
import Testing

/// No session keeps an iteration of an event loop to itself.
@Suite struct FairnessTests {
    /// Each request is logged, once.
    private static let log = "log: {level: trace, slow: 0ms}\n"

    /// Two sessions send sixty pings each while the daemon is stopped, so that it finds all of them at once. Small ones
    /// are one iteration's work; large ones are more, and the sessions take turns.
    @Test func largeFramesAreMoreWorkThanSmallOnes() throws {
        let small = try Self.runs(frameBytes: 0)
        #expect(small.map(\.count) == [60, 60])
        let large = try Self.runs(frameBytes: 2048)
        #expect(large.count > 2 && large.map(\.count).reduce(0, +) == 120, "\(large.map(\.count))")
        #expect(large.first?.first != large.dropFirst().first?.first)
    }

    /// A user who sends more than its rate takes no more turns of others than a user without a limit.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"))
    func refusedRequestsDelayOthersNoMoreThanOthersRequests() throws {
        let unlimited = try Self.predecessors(limits: "{}")
        let limited = try Self.predecessors(limits: "{requests_per_second: 1}")
        // The same share of each iteration, so that a request of the other user is preceded by as many.
        #expect(limited == unlimited)
        #expect(limited.count == 60 && limited.first ?? 480 < 480, "\(limited)")
    }

    /// How many requests of eight sessions of one user, whose access rule has these limits, an event loop executes or
    /// refuses before each request of another user's session that was sent together with them.
    private static func predecessors(limits: String) throws -> [Int] {
        let configuration = Configuration(
            socket: #"mode: "0666""#,
            access: """
                - {users: [65534], allow: [read], limits: \(limits)}
                - {users: [65533], allow: [read]}
                """, limits: "sessions_per_user: 100", loops: 1)
        let daemon = try Daemon(on: Installation(text: configuration.text + log))
        var connections = try (0..<8).map { _ in try daemon.connect(as: Peer(user: 65534, group: 65534)) }
        connections.append(try daemon.connect(as: Peer(user: 65533, group: 65533)))
        let lines = try lines(of: daemon, connections, frameBytes: 2048)
        #expect(lines.count == 9 * 60)
        return lines.enumerated().filter { $0.element.contains("of uid 65533") }.enumerated().map {
            $0.element.offset - $0.offset
        }
    }

    /// The sessions whose requests one event loop executes, in the order in which it does, cut where they change.
    ///
    /// - Parameter frameBytes: what white space makes each frame at least.
    private static func runs(frameBytes: Int) throws -> [[Substring]] {
        let daemon = try Daemon(on: Installation(text: Configuration(loops: 1).text + log))
        let connections = try (0..<2).map { _ in try daemon.connect() }
        var runs: [[Substring]] = []
        for line in try lines(of: daemon, connections, frameBytes: frameBytes) {
            let session = line.prefix { $0 != ":" }
            if runs.last?.last == session { runs[runs.count - 1].append(session) } else { runs.append([session]) }
        }
        return runs
    }

    /// Sends sixty pings on each connection while the daemon is stopped, and returns what it logs about each of them.
    private static func lines(
        of daemon: Daemon, _ connections: [Connection], frameBytes: Int
    ) throws -> [Substring] {
        for connection in connections { _ = try connection.call("session.hello") }
        var request = Connection.request("daemon.ping", id: "1")
        request += String(repeating: " ", count: max(0, frameBytes - request.utf8.count))
        let frames = Array(repeatElement(Connection.frame(request), count: 60).joined())
        daemon.process.signal(SIGSTOP)
        defer { daemon.process.signal(SIGCONT) }
        let deadline = Deadline()
        while try !status(of: daemon).contains("State:\tT") { try #require(!deadline.hasPassed) }
        for connection in connections { try connection.send(frames) }
        daemon.process.signal(SIGCONT)
        for connection in connections {
            for _ in 0..<60 { _ = try connection.receive() }
        }
        return daemon.log.split(separator: "\n").filter { $0.contains(": daemon.ping") }
    }

    private static func status(of daemon: Daemon) throws -> String {
        String(decoding: try Files.read("/proc/\(daemon.process.pid)/status"), as: UTF8.self)
    }
}
