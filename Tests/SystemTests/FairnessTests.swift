import CRUDTestSupport
import Glibc
import Testing

/// No session keeps an iteration of an event loop to itself.
@Suite struct FairnessTests {
    /// Two sessions send sixty pings each while the daemon is stopped, so that it finds all of them at once. Small ones
    /// are one iteration's work; large ones are more, and the sessions take turns.
    @Test func largeFramesAreMoreWorkThanSmallOnes() throws {
        let small = try Self.runs(frameBytes: 0)
        #expect(small.map(\.count) == [60, 60])
        let large = try Self.runs(frameBytes: 2048)
        #expect(large.count > 2 && large.map(\.count).reduce(0, +) == 120, "\(large.map(\.count))")
        #expect(large.first?.first != large.dropFirst().first?.first)
    }

    /// The sessions whose requests one event loop executes, in the order in which it does, cut where they change.
    ///
    /// - Parameter frameBytes: what white space makes each frame at least.
    private static func runs(frameBytes: Int) throws -> [[Substring]] {
        let daemon = try Daemon(on: Installation(text: Configuration(loops: 1).text + "log: {level: trace}\n"))
        let connections = try (0..<2).map { _ in try daemon.connect() }
        for connection in connections { #expect(try connection.call("session.hello").result != nil) }
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
            for _ in 0..<60 { #expect(try connection.receive().result != nil) }
        }
        var runs: [[Substring]] = []
        for line in daemon.log.split(separator: "\n") where line.hasSuffix(": daemon.ping") {
            let session = line.dropLast(": daemon.ping".count)
            if runs.last?.last == session { runs[runs.count - 1].append(session) } else { runs.append([session]) }
        }
        return runs
    }

    private static func status(of daemon: Daemon) throws -> String {
        String(decoding: try Files.read("/proc/\(daemon.process.pid)/status"), as: UTF8.self)
    }
}
