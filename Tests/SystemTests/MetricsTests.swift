import CRUDTestSupport
import Testing

/// `daemon.metrics`, read by a parser of somebody else's.
@Suite struct MetricsTests {
    /// Every sample of an OpenMetrics text, as `NAME{LABEL="VALUE",…}` with the labels in alphabetical order.
    ///
    /// - Throws: if prometheus-client's strict parser does not accept the text.
    static func samples(_ text: String) throws -> [String: Double] {
        let program = """
            import sys
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
            for family in text_string_to_metric_families(sys.stdin.read()):
                assert family.documentation, family.name
                for sample in family.samples:
                    labels = ",".join(f'{k}="{v}"' for k, v in sorted(sample.labels.items()))
                    print(f"{sample.name}{{{labels}}}\\t{sample.value}")
            """
        let outcome = try Command.run("/usr/bin/python3", ["-c", program], input: text)
        guard outcome.status == .exited(0) else { throw Failure("the parser says: \(outcome.errors)") }
        var samples: [String: Double] = [:]
        for line in outcome.output.split(separator: "\n") {
            let parts = line.split(separator: "\t")
            samples[String(parts[0])] = Double(parts[1])
        }
        return samples
    }

    private static func scrape(_ connection: Connection) throws -> [String: Double] {
        let result = try #require(try connection.call("daemon.metrics").result)
        return try samples(try #require(result["text"]?.string))
    }

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
        let samples = try Self.scrape(connections[0])
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
        let counted = samples.filter { $0.key.hasPrefix("crudd_requests_total") }.values.reduce(0, +)
        #expect(counted == Double(expected.values.reduce(0, +)) && counted > 1000)
        #expect(samples[#"crudd_request_duration_seconds_count{method="record.read"}"#] == 918)
        #expect(samples[#"crudd_request_duration_seconds_bucket{le="+Inf",method="record.create"}"#] == 120)
        #expect(samples[#"crudd_request_duration_seconds_bucket{le="0.0001",method="record.create"}"#] != nil)
        #expect(samples[#"crudd_collection_requests_total{collection="known"}"#] == 1044)
    }

    @Test func backendsSessionsCacheAndProcessAreMeasured() throws {
        let name = #"a\"b"#
        let daemon = try Daemon(Configuration(collections: "\"*\": {backend: main}", limits: "sessions_per_user: 2"))
        let connection = try daemon.connect()
        let params = #"{"collection":"a\\\"b","id":"a","item":1}"#
        #expect(try connection.call("record.upsert", params).result != nil)
        for _ in 0..<3 { #expect(try connection.call("record.read", Connection.params("c", "a")).error != nil) }
        let samples = try Self.scrape(connection)
        #expect(samples[#"crudd_collection_requests_total{collection="\#(name)"}"#] == 1)
        #expect(samples[#"crudd_backend_state{backend="main",state="ready"}"#] == 1)
        #expect(samples[#"crudd_backend_state{backend="main",state="down"}"#] == 0)
        #expect(samples[#"crudd_backend_queue_length{backend="main"}"#] == 0)
        #expect(samples[#"crudd_backend_restarts_total{backend="main"}"#] == 0)
        #expect(samples[#"crudd_backend_batch_size_count{backend="main"}"#] ?? 0 >= 1)
        #expect(samples[#"crudd_backend_write_duration_seconds_sum{backend="main"}"#] ?? 0 > 0)
        #expect(samples["crudd_sessions{}"] == 1)
        #expect(samples["crudd_sessions_opened_total{}"] == 1)
        #expect(samples["crudd_cache_limit_bytes{}"] == Double(64 << 20))
        #expect(samples["crudd_received_bytes_total{}"] ?? 0 > 100)
        #expect(samples["crudd_sent_bytes_total{}"] ?? 0 > 100)
        #expect(samples["crudd_slow_requests_total{}"] != nil)
        #expect(samples["process_resident_memory_bytes{}"] ?? 0 > 1_000_000)
        #expect(samples["process_cpu_seconds_total{}"] ?? 0 > 0)
        #expect(abs((samples["process_open_fds{}"] ?? 0) - Double(try daemon.descriptorCount)) <= 2)
        #expect(samples["process_start_time_seconds{}"] ?? 0 > 1_700_000_000)
    }

    @Test func whoWaitsForChangesIsCounted() throws {
        let daemon = try Daemon(Configuration(collections: "c: {backend: main, changes: true}"))
        let (connection, follower) = (try daemon.connect(), try daemon.connect())
        #expect(try Self.scrape(connection)["crudd_changes_followers{}"] == 0)
        let request = Connection.request(
            "collection.changes", #"{"collection":"c","after":"now","wait":300}"#, id: "1")
        try follower.sendFrame(request)
        let deadline = Deadline()
        while try Self.scrape(connection)["crudd_changes_followers{}"] != 1 {
            try #require(!deadline.hasPassed, "it does not wait")
        }
        let waited = ContinuousClock.now
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(try follower.receive().result != nil)
        let samples = try Self.scrape(connection)
        #expect(samples["crudd_changes_followers{}"] == 0)
        #expect(samples[#"crudd_request_duration_seconds_count{method="collection.changes"}"#] == 1)
        let seconds = samples[#"crudd_request_duration_seconds_sum{method="collection.changes"}"#] ?? .infinity
        #expect(seconds < (ContinuousClock.now - waited) / .seconds(1), "what it waited does not count")
    }

    /// The table of the operations page has every metric, and nothing else.
    @Test func everyMetricIsDocumented() throws {
        let daemon = try Daemon()
        let result = try daemon.connect().call("daemon.metrics").result
        let text = try #require(result?["text"]?.string)
        let described = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { line in
            let words = line.split(separator: " ")
            return "\(words[2])\(words[3] == "counter" ? "_total" : "")"
        }
        let page = String(
            decoding: try Files.read("\(BuildProducts.packageDirectory)/etc/OPERATIONS.md"), as: UTF8.self)
        let documented = page.split(separator: "\n").filter { $0.hasPrefix("| `crudd_") || $0.hasPrefix("| `process_") }
            .map { line in String(line.dropFirst(3).prefix { $0 != "`" && $0 != "{" }) }
        #expect(documented == described)
    }

    @Test func onlyAdministratorsSeeThem() throws {
        let daemon = try Daemon(
            Configuration(socket: #"mode: "0666""#, access: "- {users: [nobody], allow: [read, write]}"))
        guard Peer.canImpersonate else { return }
        let other = try daemon.connect(as: Peer(user: 65534, group: 65534))
        for (method, params) in [
            ("daemon.metrics", "{}"), ("daemon.slowLog", "{}"), ("session.list", "{}"),
            ("session.close", #"{"session":1}"#),
        ] {
            #expect(try other.call(method, params).error?.name == "permission_denied", "\(method)")
        }
    }
}
