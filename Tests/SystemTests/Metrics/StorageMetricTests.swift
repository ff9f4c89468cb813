import CRUDTestSupport
import Glibc
import Testing

/// The metrics of backends, of the cache and of moves, with several event loops.
@Suite struct StorageMetricTests {
    /// SQLite for every collection, and beside it backends of the scripted plugin, each with a collection of its name.
    private static func daemon(_ scripted: [(name: String, options: String)]) throws -> Daemon {
        let backends = scripted.map { "\($0.name): {plugin: scripted, options: \($0.options)}" }
        let installation = try Installation(
            Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    child: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
                    \(backends.joined(separator: "\n"))
                    """,
                collections: """
                    \(scripted.map { "\($0.name): {backend: \($0.name)}" }.joined(separator: "\n"))
                    "*": {backend: main}
                    """, limits: "buffer_bytes: 64MiB", loops: 3))
        try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        return try Daemon(on: installation)
    }

    private static func state(_ backend: String, _ state: String) -> String {
        #"crudd_backend_state{backend="\#(backend)",state="\#(state)"}"#
    }

    // MARK: Backends

    @Test func statesAndRestarts() throws {
        let daemon = try Self.daemon([("hung", "{open_hangs: 1}"), ("lost", "{open_down: 1}"), ("fallen", "{}")])
        let connection = try daemon.connect()
        for _ in 0..<2 {
            let child = try #require(try ChildDaemon.status(of: "child", connection).pid)
            kill(child, SIGKILL)
            try ChildDaemon.awaitReady("child", notWith: child, connection)
        }
        // While it writes, the plugin says that its storage is lost.
        #expect(try connection.create("fallen", "a", "1").result != nil)
        try connection.awaitMetric(Self.state("fallen", "ready"), 1)
        // What a plugin says of storage that is up is a notice.
        #expect(try connection.create("fallen", "up:1", "1").result != nil)
        try connection.awaitMetric(#"crudd_backend_notice{backend="fallen"}"#, 1)
        _ = try connection.create("fallen", "down:1", "1")
        try connection.awaitMetric(Self.state("fallen", "down"), 1)
        try connection.awaitMetric(Self.state("lost", "down"), 1)
        let expected = ["main": "ready", "child": "ready", "hung": "opening", "lost": "down", "fallen": "down"]
        var samples = try connection.metrics()
        // One that stays down for long is opened again, and on a busy machine that may have happened already.
        let deadline = Deadline()
        while !deadline.hasPassed, expected.contains(where: { samples[Self.state($0.key, $0.value)] != 1 }) {
            _ = try connection.create("fallen", "down:1", "1")
            samples = try connection.metrics()
        }
        for (backend, present) in expected {
            for state in ["opening", "ready", "down", "closed"] {
                let value: Double = state == present ? 1 : 0
                #expect(samples[#"crudd_backend_state{backend="\#(backend)",state="\#(state)"}"#] == value)
            }
            #expect(samples[#"crudd_backend_notice{backend="\#(backend)"}"#] == 0)
            guard present != "down" else { continue }
            let restarts: Double = backend == "child" ? 2 : 0
            #expect(samples[#"crudd_backend_restarts_total{backend="\#(backend)"}"#] == restarts)
        }
    }

    /// A hundred changes of a batch are one call, those of requests one after another are a call each. What the daemon
    /// does besides, such as looking for records that have expired, is none.
    @Test func callsOfThePlugin() throws {
        let daemon = try Self.daemon([("slow", "{}")])
        let connections = try (0..<3).map { _ in try daemon.connect() }
        let start = ContinuousClock.now
        for number in 0..<9 { #expect(try connections[number % 3].create("c", "\(number)", "1").result != nil) }
        let operations = (0..<100).map { #"{"op":"upsert","collection":"c","id":"of 100: \#($0)","item":1}"# }
        let batch = #"{"operations":[\#(operations.joined(separator: ","))]}"#
        #expect(try connections[1].call("record.batch", batch).result != nil)
        #expect(try connections[2].create("slow", "slow:200", "1").result != nil)
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let samples = try connections[0].metrics()
        #expect(samples[#"crudd_backend_batch_size_count{backend="main"}"#] == 10)
        #expect(samples[#"crudd_backend_batch_size_sum{backend="main"}"#] == 109)
        #expect(samples[#"crudd_backend_batch_size_bucket{backend="main",le="1.0"}"#] == 9)
        #expect(samples[#"crudd_backend_batch_size_bucket{backend="main",le="64.0"}"#] == 9)
        #expect(samples[#"crudd_backend_batch_size_bucket{backend="main",le="128.0"}"#] == 10)
        #expect(samples[#"crudd_backend_batch_size_count{backend="child"}"#] == 0)
        #expect(samples[#"crudd_backend_write_duration_seconds_count{backend="main"}"#] == 10)
        #expect((0.000_001...seconds).contains(samples[Self.writeSeconds("main")] ?? -1))
        #expect((0.2...seconds).contains(samples[Self.writeSeconds("slow")] ?? -1))
        #expect(samples[#"crudd_backend_write_duration_seconds_bucket{backend="slow",le="0.1"}"#] == 0)
        #expect(samples[#"crudd_backend_write_duration_seconds_bucket{backend="slow",le="+Inf"}"#] == 1)
        let requests = samples[#"crudd_request_duration_seconds_sum{method="record.create"}"#] ?? -1
        #expect((0.2...seconds).contains(requests))
        // The others may take as long on a busy machine.
        let short = samples[#"crudd_request_duration_seconds_bucket{le="0.1",method="record.create"}"#] ?? -1
        #expect((0...9).contains(short))
        #expect(samples[#"crudd_request_duration_seconds_count{method="record.create"}"#] == 10)
    }

    private static func writeSeconds(_ backend: String) -> String {
        #"crudd_backend_write_duration_seconds_sum{backend="\#(backend)"}"#
    }

    /// One write that does not return, and those of each event loop behind it.
    @Test func whatWaitsForABackend() throws {
        let daemon = try Self.daemon([("gated", "{gated: 1}")])
        let administrator = try daemon.connect()
        let item = "\"\(String(repeating: "x", count: 1 << 20))\""
        let writers = try (0..<4).map { _ in try daemon.connect() }
        let deadline = Deadline()
        for (number, writer) in writers.enumerated() {
            let params = Connection.params("gated", "\(number)", item: item)
            try writer.sendFrame(Connection.request("record.create", params, id: "1"))
            while number == 0, !daemon.log.contains("scripted waits") {
                try #require(!deadline.hasPassed, "the write does not begin")
            }
            try administrator.awaitMetric(#"crudd_backend_queue_length{backend="gated"}"#, number)
        }
        let samples = try administrator.metrics()
        #expect(samples[#"crudd_backend_queue_length{backend="gated"}"#] == 3)
        #expect(samples[#"crudd_backend_queue_length{backend="main"}"#] == 0)
        #expect(samples["crudd_buffer_limit_bytes{}"] == Double(64 << 20))
        let sessions = try #require(try administrator.call("session.list").result?["sessions"]?.elements)
        let held = sessions.compactMap { $0["heldBytes"]?.integer }.filter { $0 > 1 << 20 }
        // The session that asks is charged for its reply.
        let sum = Double(held.reduce(0, +))
        #expect(held.count == 4 && (sum...sum + 65536).contains(samples["crudd_buffer_bytes{}"] ?? 0))
    }

    // MARK: The cache

    @Test func cacheOfAllLoops() throws {
        let (bytes, number) = (1 << 20, 2000)
        let daemon = try Daemon(Configuration(loops: 3, cache: "\(bytes)B"))
        let connections = try (0..<3).map { _ in try daemon.connect() }
        let item = #""\#(String(repeating: "x", count: 1000))""#
        let ids = (0..<number).map(String.init)
        let operations = ids.map { #"{"op":"create","collection":"c","id":"\#($0)","item":\#(item)}"# }
        let halves = [0..<number / 2, number / 2..<number]
        for half in halves {
            let params = #"{"operations":[\#(operations[half].joined(separator: ","))]}"#
            #expect(try connections[0].call("record.batch", params).error == nil)
        }
        // An event loop does not know at its first read whether somebody else has written, and forgets what is cached.
        for connection in connections {
            for _ in 0..<2 { #expect(try connection.item("c", "first") == nil) }
        }
        let before = try connections[0].metrics()
        let (hits, misses) = (before["crudd_cache_hits_total{}"] ?? 0, before["crudd_cache_misses_total{}"] ?? 0)
        for connection in connections {
            for id in ids.prefix(10) { #expect(try connection.item("c", id) == item) }
            #expect(try connection.item("c", "none") == nil)
        }
        func cached() throws -> Double {
            let bytes = try connections[0].call("daemon.status").result?["cache"]?["bytes"]?.integer
            return Double(try #require(bytes))
        }
        var samples = try connections[0].metrics()
        #expect(samples["crudd_cache_misses_total{}"] == misses + 11)
        #expect(samples["crudd_cache_hits_total{}"] == hits + 22)
        #expect(samples["crudd_cache_evictions_total{}"] == 0)
        #expect(samples["crudd_cache_records{}"] == 12)
        #expect(try samples["crudd_cache_bytes{}"] == cached())
        #expect(try (10_000...Double(bytes)).contains(cached()))
        #expect(samples["crudd_cache_limit_bytes{}"] == Double(bytes))
        for (half, connection) in zip(halves, connections.dropFirst()) {
            #expect(try connection.readMany("c", Array(ids[half])).error == nil)
        }
        samples = try connections[0].metrics()
        let records = samples["crudd_cache_records{}"] ?? 0
        #expect(samples["crudd_cache_misses_total{}"] == misses + Double(11 + number - 10))
        #expect(samples["crudd_cache_hits_total{}"] == hits + 32)
        #expect(samples["crudd_cache_evictions_total{}"] == Double(number + 2) - records)
        #expect((1...Double(bytes / item.utf8.count)).contains(records))
        #expect(try samples["crudd_cache_bytes{}"] == cached())
    }

    // MARK: Moves

    /// The first page of 64 records is copied; the only record of the next one cannot be.
    @Test func progressOfAMove() throws {
        var configuration = MovePlaces.configuration("{backend: main}")
        configuration.loops = 3
        let daemon = try Daemon(configuration)
        let connection = try daemon.connect()
        for id in 100..<164 { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        #expect(try connection.create("c", "zz", #"{"deep":[1,null]}"#).result != nil)
        func moves() throws -> [String] { try connection.metrics().values.keys.filter { $0.hasPrefix("crudd_move_") } }
        #expect(try moves() == [])
        configuration = MovePlaces.configuration("{backend: kid, format: plist}")
        configuration.loops = 3
        try daemon.installation.configure(configuration)
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        let samples = try connection.metrics()
        #expect(samples[#"crudd_move_state{collection="c",state="failed"}"#] == 1)
        #expect(samples[#"crudd_move_copied_records{collection="c"}"#] == 64)
        #expect(samples[#"crudd_move_records{collection="c"}"#] == 65)
        #expect(try moves().count == 3)
        #expect(try connection.update("c", "zz", "1").result != nil)
        #expect(try connection.reloadMoving() == [], "it has begun already")
        try connection.awaitMoves()
        #expect(try moves() == [])
    }

    /// What a cancelled move has copied is removed, which a lock keeps from ending.
    @Test func removalsThatWait() throws {
        func configuration(_ place: String) -> Configuration {
            Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                    """, collections: "c: \(place)")
        }
        let daemon = try Daemon(configuration("{backend: main}"))
        let connection = try daemon.connect()
        for id in 100..<164 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        #expect(try connection.create("c", "zz", "null").result != nil)
        try daemon.installation.configure(configuration("{backend: other, format: plist}"))
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves { $0.first?["phase"]?.string == "failed" }
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/other.sqlite")
        try daemon.installation.configure(configuration("{backend: main}"))
        #expect(try !connection.reload().isEmpty)
        let suspended = #"crudd_removal_state{backend="other",collection="c",format="plist",state="suspended"}"#
        // Each attempt is a moment of `removing`.
        let deadline = Deadline()
        var samples = try connection.metrics()
        while samples[suspended] == nil {
            try #require(!deadline.hasPassed)
            samples = try connection.metrics()
        }
        #expect(
            samples[#"crudd_removal_state{backend="other",collection="c",format="plist",state="suspended"}"#] == 1)
        try lock.end()
        try connection.awaitRemovals()
        #expect(try connection.metrics()[suspended] == nil)
        #expect(try daemon.stop() == .exited(0))
    }
}
