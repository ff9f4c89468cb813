import CRUDTestSupport
import Testing

/// `daemon.metrics`: the counts of requests, its documentation, and who may ask for it.
@Suite struct MetricsTests {
    private static func requests(_ method: String, _ outcome: String = "ok") -> String {
        #"crudd_requests_total{method="\#(method)",outcome="\#(outcome)"}"#
    }

    /// More than 1000 requests on three loops, in single frames, batch arrays and notifications.
    @Test func everyRequestIsCountedOnce() throws {
        let daemon = try Daemon(Configuration(collections: "known: {backend: main}", loops: 3))
        let connections = try (0..<6).map { _ in try daemon.connect() }
        for (number, connection) in connections.enumerated() {
            let created = (0..<10).map { Connection.params("known", "\(number)-\($0)", item: "1") }
            for params in created { #expect(try connection.call("record.create", params).result != nil) }
            for params in created { #expect(try connection.call("record.create", params).error != nil) }
            let frames = (0..<150).map { id in
                let record = Connection.params("known", id % 5 == 0 ? "none" : "\(number)-1")
                return Connection.frame(Connection.request("record.read", record, id: "\(id)"))
            }
            try connection.send(frames.joined())
            for _ in frames { _ = try connection.receive() }
            try connection.sendFrame(Connection.notification("record.delete", Connection.params("known", "none")))
            try connection.sendFrame(Connection.notification("record.read", Connection.params("known", "none")))
            #expect(try connection.call("record.read", Connection.params("unknown", "a")).error != nil)
            #expect(try connection.call("record.read", "{}").error != nil)
            #expect(try connection.call("no.such.method").error != nil)
            try connection.sendFrame("{")
            _ = try connection.receive()
            let ping = Connection.request("daemon.ping", id: "1")
            try connection.sendFrame("[\(ping),\(ping),\(Connection.notification("daemon.ping"))]")
            #expect(try connection.receiveBatch().count == 2)
            let operations = #"{"operations":[{"op":"delete","collection":"known","id":"none"}]}"#
            #expect(try connection.call("record.batch", operations).result != nil)
            #expect(try connection.call("record.count", #"{"collection":"known"}"#).result != nil)
        }
        let samples = try connections[0].metrics()
        let expected = [
            Self.requests("record.create"): 60, Self.requests("record.create", "record_exists"): 60,
            Self.requests("record.read"): 720 + 6, Self.requests("record.read", "record_not_found"): 180,
            Self.requests("record.read", "collection_not_found"): 6,
            Self.requests("record.read", "invalid_params"): 6, Self.requests("record.delete"): 0,
            Self.requests("record.delete", "record_not_found"): 6, Self.requests("unknown", "method_not_found"): 6,
            Self.requests("unknown", "parse_error"): 6, Self.requests("daemon.ping"): 18,
            Self.requests("record.batch"): 6, Self.requests("record.count"): 6,
            Self.requests("daemon.metrics"): 0, Self.requests("session.list"): 0,
        ]
        for (sample, value) in expected { #expect(samples[sample] == Double(value), "\(sample)") }
        #expect(samples[#"crudd_requests_total{method="record.create",outcome="record_exists"}"#] == 60)
        let counted = samples.sum("crudd_requests_total{")
        #expect(counted == Double(expected.values.reduce(0, +)) && counted > 1000)
        for method in ["record.create", "record.read", "record.delete", "record.batch", "daemon.ping", "unknown"] {
            let timed = samples[#"crudd_request_duration_seconds_count{method="\#(method)"}"#]
            #expect(timed == samples.sum(#"crudd_requests_total{method="\#(method)","#), "\(method)")
        }
        #expect(samples[#"crudd_request_duration_seconds_count{method="record.read"}"#] == 918)
        #expect(samples[#"crudd_request_duration_seconds_bucket{le="+Inf",method="record.create"}"#] == 120)
        #expect(samples[#"crudd_request_duration_seconds_bucket{le="0.0001",method="record.create"}"#] != nil)
        #expect(samples[#"crudd_collection_requests_total{collection="known"}"#] == 1044)
    }

    /// Names of collections are any text.
    @Test func labelsAreEscaped() throws {
        let connection = try Daemon(Configuration(loops: 3)).connect()
        let names = [#"a\"b"#, "two\u{2028}lines", "{x=\"1\"} 7 # é"]
        for (count, name) in names.enumerated() {
            for _ in 0...count { #expect(try connection.upsert(name, "a", "1").result != nil) }
        }
        let samples = try connection.metrics()
        for (count, name) in names.enumerated() {
            #expect(samples[#"crudd_collection_requests_total{collection="\#(name)"}"#] == Double(count + 1))
        }
    }

    @Test func whoWaitsForChangesIsCounted() throws {
        let daemon = try Daemon(Configuration(collections: "c: {backend: main, changes: true}", loops: 3))
        let connection = try daemon.connect()
        let followers = try (0..<3).map { _ in try daemon.connect() }
        var samples = try connection.metrics()
        #expect(samples["crudd_changes_followers{}"] == 0)
        let request = Connection.request(
            "collection.changes", #"{"collection":"c","after":"now","wait":300}"#, id: "1")
        // If what they wait counted, no round would add less than that three times.
        var (rounds, seconds, isLess) = (0.0, 0.0, false)
        while rounds < 10, !isLess {
            for follower in followers { try follower.sendFrame(request) }
            try connection.awaitMetric("crudd_changes_followers", 3)
            let start = ContinuousClock.now
            while start.duration(to: .now) < .milliseconds(200) { _ = try connection.call("daemon.ping") }
            let waited = start.duration(to: .now) / .seconds(1)
            #expect(try connection.upsert("c", "a", "1").result != nil)
            for follower in followers { #expect(try follower.receive().result != nil) }
            samples = try connection.metrics()
            #expect(samples["crudd_changes_followers{}"] == 0)
            rounds += 1
            #expect(samples[#"crudd_request_duration_seconds_count{method="collection.changes"}"#] == 3 * rounds)
            let sum = samples[#"crudd_request_duration_seconds_sum{method="collection.changes"}"#] ?? .infinity
            isLess = sum - seconds < 2 * waited
            seconds = sum
        }
        #expect(isLess, "what they waited does not count")
    }

    /// The table of the operations page has every metric, and nothing else.
    @Test func everyMetricIsDocumented() throws {
        let families = try Daemon().connect().metrics().families
        let page = String(
            decoding: try Files.read("\(BuildProducts.packageDirectory)/etc/OPERATIONS.md"), as: UTF8.self)
        let documented = page.split(separator: "\n").filter { $0.hasPrefix("| `crudd_") || $0.hasPrefix("| `process_") }
            .map { line in String(line.dropFirst(3).prefix { $0 != "`" && $0 != "{" }) }
        #expect(documented == families)
    }

    /// A test expects a value of every metric: whoever adds one adds that as well.
    @Test func everyMetricIsCheckedByValue() throws {
        let directory = "\(BuildProducts.packageDirectory)/Tests/SystemTests/Metrics"
        let lines = try Files.names(in: directory).flatMap { file in
            String(decoding: try Files.read("\(directory)/\(file)"), as: UTF8.self).split(separator: "\n")
        }
        let checks = lines.filter { line in
            line.contains("samples[") && ["] == ", ".contains(samples["].contains { line.contains($0) }
        }
        for family in try Daemon().connect().metrics().families {
            let names = ["{", "_count{"].map { "\"\(family)\($0)" }
            let isChecked = names.contains { name in checks.contains { $0.contains(name) } }
            #expect(isChecked, "no test expects a value of \(family)")
        }
    }

    @Test func onlyAdministratorsSeeThem() throws {
        let daemon = try Daemon(
            Configuration(socket: #"mode: "0666""#, access: "- {users: [nobody], allow: [read, write]}"))
        guard Peer.canImpersonate else { return }
        let other = try daemon.connect(as: Peer(user: 65534, group: 65534))
        for (method, params) in [
            ("daemon.metrics", "{}"), ("daemon.slowLog", "{}"), ("session.list", "{}"),
            ("session.close", #"{"session":1}"#), ("daemon.configuration", "{}"),
            ("daemon.logLevel", #"{"level":"trace"}"#),
            ("backend.backup", #"{"backend":"main","directory":"/tmp"}"#),
        ] {
            #expect(try other.call(method, params).error?.name == "permission_denied", "\(method)")
        }
    }
}
