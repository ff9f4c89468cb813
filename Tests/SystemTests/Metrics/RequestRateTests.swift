import CRUDTestSupport
import Testing

/// `limits` of access rules.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as another user")) struct RequestRateTests {
    private static let nobody = Peer(user: 65534, group: 65534)

    private static func configuration(_ limits: String) -> Configuration {
        Configuration(
            socket: #"mode: "0666""#,
            access: """
                - {users: [65534], collections: [c], allow: [read, write], limits: \(limits)}
                - {users: [65534, 65533], allow: [read, write]}
                """, limits: "sessions_per_user: 100")
    }

    @Test func sixtyFourClientsOfOneUserGetItsRateAndOthersAnything() throws {
        let daemon = try Daemon(Self.configuration("{requests_per_second: 500}"))
        let clients = try (0..<64).map { _ in try daemon.connect(as: Self.nobody) }
        let other = try daemon.connect(as: Peer(user: 65533, group: 65533))
        let admin = try daemon.connect()
        var rounds: [Round] = []
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now - start < .seconds(10) {
            var round = Round(start: clock.now)
            for client in clients { try client.sendFrame(Connection.request("daemon.ping", id: "1")) }
            for client in clients {
                let reply = try client.receive()
                if reply.result != nil { round.admitted += 1 } else { round.refused += 1 }
                guard let error = reply.error else { continue }
                #expect(error.name == "limit_exceeded" && error.details?["limit"]?.string == "requests_per_second")
                #expect(error.details?["maximum"]?.text == "500")
            }
            round.end = clock.now
            rounds.append(round)
            #expect(try other.call("daemon.ping").result != nil)
            #expect(try admin.call("daemon.ping").result != nil)
        }
        let time = clock.now - start
        let (admitted, refused) = (rounds.map(\.admitted).reduce(0, +), rounds.map(\.refused).reduce(0, +))
        // A tenth of a second of the rate comes at once, and nothing beside the rate later: within 5 % of it.
        #expect(Double(admitted) <= time / .seconds(1) * 500 + 51, "\(admitted) in \(time)")
        for run in Self.busyRuns(of: rounds) {
            let admitted = run.map(\.admitted).reduce(0, +)
            let time = run[run.count - 1].start - run[0].end
            #expect(Double(admitted) >= time / .seconds(1) * 500 - 1, "\(admitted) in \(time)")
        }

        let sessions = try #require(try admin.call("session.list").result?["sessions"]?.elements)
        let limited = sessions.filter { $0["uid"]?.text == "65534" }
        #expect(limited.count == 64)
        #expect(
            limited.allSatisfy {
                $0["requestsPerSecond"]?.text == "500" && $0["refusedRequests"]?.text == "\(refused)"
            })
        let others = sessions.filter { $0["uid"]?.text != "65534" }
        #expect(others.allSatisfy { $0["requestsPerSecond"] == nil && $0["refusedRequests"] == nil })
        let samples = try admin.metrics()
        #expect(samples[#"crudd_user_refused_requests_total{uid="65534"}"#] == Double(refused))
    }

    /// Requests of which each client has sent one before a reply to any of them is awaited.
    private struct Round {
        let start: ContinuousClock.Instant
        var end: ContinuousClock.Instant
        var admitted = 0
        var refused = 0

        init(start: ContinuousClock.Instant) {
            self.start = start
            end = start
        }
    }

    /// The rounds one after the other between whose refusals no credit was lost, so that between the first and the last
    /// of these refusals the user got its rate: after a refusal there is nothing to lose for the 100 ms that are worth
    /// something at once. A machine that is busy makes them shorter, and proves nothing wrong.
    private static func busyRuns(of rounds: [Round]) -> [[Round]] {
        var runs: [[Round]] = []
        var last: Round?
        for round in rounds {
            if let last, round.refused > 0, round.end - last.start <= .milliseconds(100) {
                runs[runs.count - 1].append(round)
            } else if round.refused > 0 {
                runs.append([round])
            }
            last = round.refused > 0 ? round : nil
        }
        return runs.filter { $0.count > 1 }
    }

    @Test func operationsOfABatchCountOneByOne() throws {
        let daemon = try Daemon(Self.configuration("{requests_per_second: 10}"))
        let client = try daemon.connect(as: Self.nobody)
        let operations = (0..<1000).map { #"{"op":"create","collection":"c","id":"\#($0)","item":1}"# }
        let params = #"{"operations":[\#(operations.joined(separator: ","))]}"#
        #expect(try client.call("record.batch", params).result != nil)
        // They take a hundred seconds of the rate.
        let other = try daemon.connect(as: Self.nobody)
        #expect(try client.call("daemon.ping").error?.details?["limit"]?.string == "requests_per_second")
        #expect(try other.call("daemon.ping").error?.details?["limit"]?.string == "requests_per_second")
        let admin = try daemon.connect()
        #expect(try admin.call("record.count", #"{"collection":"c"}"#).result?["count"]?.text == "1000")
    }

    /// One request per second, and none in advance.
    @Test func nothingOfARefusedRequestIsApplied() throws {
        let daemon = try Daemon(Self.configuration("{requests_per_second: 1}"))
        let admin = try daemon.connect()
        let client = try daemon.connect(as: Self.nobody)
        #expect(try client.create("c", "first", "1").result != nil)
        let replies = try client.pipeline(
            (0..<50).map { ("record.create", Connection.params("c", "\($0)", item: "1")) })
        let applied = replies.count { $0.result != nil }
        #expect(applied < 50)
        #expect(replies.allSatisfy { $0.error.map { $0.name == "limit_exceeded" } ?? true })
        let count = try admin.call("record.count", #"{"collection":"c"}"#).result?["count"]?.text
        #expect(count == "\(applied + 1)")
        // The elements of a batch array count one by one.
        let elements = (0..<50).map { Connection.request("daemon.ping", id: "\($0)") }
        try client.sendFrame("[\(elements.joined(separator: ","))]")
        let array = try client.receiveBatch()
        #expect(array.count == 50)
        #expect(array.count { $0.error?.name == "limit_exceeded" } >= 40)

        // A reload takes the limit away from open connections, and gives it back.
        try daemon.installation.configure(Self.configuration("{}"))
        #expect(try admin.reload() == ["access: changed"])
        for _ in 0..<100 { #expect(try client.call("daemon.ping").result != nil) }
        try daemon.installation.configure(Self.configuration("{requests_per_second: 1}"))
        #expect(try admin.reload() == ["access: changed"])
        let after = try client.pipeline((0..<50).map { _ in ("daemon.ping", "{}") })
        #expect(after.count { $0.error?.name == "limit_exceeded" } >= 40)
    }
}
