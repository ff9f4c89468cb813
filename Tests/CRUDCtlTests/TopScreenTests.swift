import Testing

@testable import crudctl

/// What `crudctl top` shows, without a terminal.
@Suite struct TopScreenTests {
    /// A text of metrics after so many seconds of the same load.
    private static func metrics(_ seconds: Double, start: Double = 1000, collections: Int = 2) -> MetricsReader {
        MetricsReader(text(of: seconds, start: start, collections: collections))
    }

    private static func text(of seconds: Double, start: Double = 1000, collections: Int = 2) -> String {
        var text = """
            # TYPE crudd_build_info gauge
            crudd_build_info{version="1.2.3"} 1
            crudd_requests_total{method="record.read",outcome="ok"} \(1000 * seconds)
            crudd_requests_total{method="record.read",outcome="record_not_found"} \(10 * seconds)
            crudd_requests_total{method="record.create",outcome="ok"} \(100 * seconds)
            crudd_requests_total{method="daemon.ping",outcome="ok"} 0
            crudd_request_duration_seconds_bucket{method="record.read",le="0.0001"} \(900 * seconds)
            crudd_request_duration_seconds_bucket{method="record.read",le="0.001"} \(1000 * seconds)
            crudd_request_duration_seconds_bucket{method="record.read",le="+Inf"} \(1010 * seconds)
            crudd_sessions 12
            crudd_backend_state{backend="main",state="ready"} 1
            crudd_backend_state{backend="main",state="down"} 0
            crudd_backend_state{backend="old",state="ready"} 0
            crudd_backend_state{backend="old",state="down"} 1
            crudd_backend_queue_length{backend="main"} 7
            crudd_backend_restarts_total{backend="old"} 3
            crudd_backend_batch_size_bucket{backend="main",le="+Inf"} \(10 * seconds)
            crudd_backend_batch_size_sum{backend="main"} \(100 * seconds)
            crudd_cache_hits_total \(750 * seconds)
            crudd_cache_misses_total \(250 * seconds)
            crudd_buffer_bytes 2048
            crudd_move_state{collection="moving",state="suspended"} 1
            crudd_move_copied_records{collection="moving"} 50
            crudd_move_records{collection="moving"} 200
            process_cpu_seconds_total \(0.5 * seconds)
            process_resident_memory_bytes 20971520
            process_start_time_seconds \(start)

            """
        for number in 0..<collections {
            let name = number == 0 ? #"a\"b\\c\nd"# : "c\(number)"
            text += "crudd_collection_requests_total{collection=\"\(name)\"} \(Double(number + 1) * seconds)\n"
        }
        return text + "# EOF\n"
    }

    /// Metrics that do not change, with every part of the screen.
    static func constant(start: Double) -> String { text(of: 1, start: start, collections: 20) }

    private static func state(collections: Int = 2) -> TopState {
        var state = TopState()
        for second in 1...3 {
            state.update(metrics(Double(second), collections: collections), at: Double(second), now: 4600)
        }
        return state
    }

    private static func text(_ state: TopState, _ width: Int, _ height: Int) -> [String] {
        TopScreen(state: state, width: width, height: height).lines.map { $0.map(\.text).joined() }
    }

    @Test func readsLabelsAsTheyWere() {
        let reader = Self.metrics(1)
        #expect(reader["crudd_collection_requests_total"].first?.labels == ["collection": "a\"b\\c\nd"])
        #expect(reader.value("crudd_sessions") == 12)
        #expect(reader.value("nothing") == nil)
    }

    @Test func ratesAreDifferences() throws {
        let state = Self.state()
        #expect(state.methods.map(\.name) == ["record.read", "record.create", "daemon.ping"])
        #expect(state.methods.map(\.requests) == [1010, 100, 0])
        #expect(state.methods.map(\.errors) == [10, 0, 0])
        #expect(state.requests == [nil, 1110, 1110] && state.errors == [nil, 10, 10])
        #expect(state.hitRatio == 0.75 && state.cpu == 0.5)
        let median = try #require(state.methods[0].median)
        #expect(abs(median - 0.0001 * 505 / 900) < 1e-9)
        #expect(state.methods[0].slowest == 0.001 - 0.0009 * (1000 - 999.9) / 100)
        #expect(state.methods[1].median == nil)
        #expect(state.collections.map(\.requests) == [2, 1])
        #expect(state.backends.map(\.state) == ["ready", "down"] && state.backends[0].batch == 10)
    }

    /// Sums of fractions of a second would leave a rest of 1e-17, to which the sparkline would be scaled.
    @Test func whatHasNotChangedHasNoRate() {
        let text = """
            crudd_requests_total{method="record.read",outcome="ok"} 100
            crudd_requests_total{method="record.read",outcome="record_not_found"} 3
            crudd_requests_total{method="record.read",outcome="corrupt"} 7
            crudd_requests_total{method="record.read",outcome="unavailable"} 11

            """
        var state = TopState()
        var time = 0.0
        for step in 1...30 {
            state.update(MetricsReader(text), at: time, now: 4600)
            time += 1 + Double(step) / 1000
        }
        #expect(state.methods.map(\.requests) == [0] && state.methods.map(\.errors) == [0])
        #expect(state.requests.dropFirst().allSatisfy { $0 == 0 } && state.errors.dropFirst().allSatisfy { $0 == 0 })
    }

    /// Counters begin at 0 again, and that is not a rate.
    @Test func aDaemonThatWasRestartedHasNoRateAtFirst() {
        var state = Self.state()
        state.update(Self.metrics(0.5, start: 2000), at: 4, now: 4600)
        #expect(state.requests.last == .some(nil))
        state.lose("unavailable: gone")
        #expect(state.problem != nil && state.requests.last == .some(nil))
        state.update(Self.metrics(1.5, start: 2000), at: 6, now: 4600)
        #expect(state.requests.last == 555, "two seconds after the last one")
        #expect(state.problem == nil)
    }

    @Test func aMinuteIsKept() {
        var state = TopState()
        for second in 1...100 { state.update(Self.metrics(Double(second)), at: Double(second), now: 4600) }
        #expect(state.requests.count == 60 && state.requests.allSatisfy { $0 == 1110 })
    }

    @Test func eightyColumnsByTwentyFourLines() {
        let lines = Self.text(Self.state(), 80, 24)
        #expect(lines.count <= 24)
        #expect(lines[0].hasPrefix("crudd 1.2.3 · up 1 h 0 min · 12 sessions · 20.0 MiB memory · 50 % CPU · 2 KiB"))
        #expect(lines[1].hasPrefix("requests      1110/s  ") && lines[1].hasSuffix("██"))
        #expect(lines[3].hasPrefix("cache hits      75 %  ") && lines[3].hasSuffix("▇▇"))
        #expect(lines.contains { $0.hasPrefix("METHOD") && $0.hasSuffix("REQ/S       P99       P50     ERR/S") })
        #expect(lines.contains { $0.hasPrefix("record.read") && $0.hasSuffix("1010    999 µs     56 µs        10") })
        #expect(!lines.contains { $0.hasPrefix("daemon.ping") }, "nobody has called it")
        #expect(lines.contains { $0.hasPrefix(#"a"b\c\nd "#) }, "no control character gets to the terminal")
        #expect(lines.contains { $0.hasPrefix("main") && $0.hasSuffix("ready       7         -      10         0") })
        #expect(lines.contains { $0.hasPrefix("old") && $0.contains("down") && $0.hasSuffix("3") })
        #expect(lines.contains { $0.hasPrefix("moving") && $0.contains("suspended    25 %       200") })
    }

    @Test(arguments: [(1, 1), (3, 2), (10, 3), (20, 5), (40, 10), (79, 24), (80, 24), (119, 30), (120, 30), (200, 60)])
    func fitsEverySize(width: Int, height: Int) {
        var states = [TopState(), Self.state(), Self.state(collections: 100)]
        states[1].lose("unavailable: \(String(repeating: "long ", count: 100))")
        for state in states {
            let lines = Self.text(state, width, height)
            #expect(lines.count <= height)
            #expect(lines.allSatisfy { $0.displayWidth <= width }, "\(lines)")
        }
    }

    /// Whatever the daemon says, the terminal is left as it was.
    @Test(arguments: ["NaN", "1e300", "-1e300", "-5", "+Inf", "-Inf", "9223372036854775807", "1e-300", "0"])
    func showsEveryNumber(_ number: String) {
        var state = TopState()
        for second in 1...4 {
            let good = Self.text(of: Double(second))
            let hostile = good.split(separator: "\n").enumerated().map { index, line in
                guard !line.hasPrefix("#"), (index + second).isMultiple(of: 2) else { return String(line) }
                let words = line.replacing(#"le="0.001""#, with: #"le="\#(number)""#).split(separator: " ")
                return words.dropLast().joined(separator: " ") + " \(number)"
            }
            state.update(MetricsReader(hostile.joined(separator: "\n")), at: Double(second), now: 4600)
            for (width, height) in [(1, 1), (80, 24), (200, 60)] {
                let lines = Self.text(state, width, height)
                #expect(lines.count <= height && lines.allSatisfy { $0.displayWidth <= width }, "\(lines)")
            }
        }
        let value = Double(number) ?? 0
        for text in [Amount.count(value), Amount.time(value), Amount.bytes(value)] {
            #expect(text.count <= 9, "\(text)")
        }
        #expect(!Amount.duration(value).isEmpty)
        #expect(TopScreen.sparkline([value, nil, 1], width: 3).count == 3)
    }

    @Test func tablesStandBesideEachOtherWhereThereIsRoom() {
        let lines = Self.text(Self.state(), 200, 60)
        #expect(lines.contains { $0.hasPrefix("METHOD") && $0.contains("COLLECTION") })
        let narrow = Self.text(Self.state(), 40, 10)
        #expect(narrow.contains { $0.hasPrefix("METHOD") } && narrow.contains { $0.hasPrefix("record.read") })
    }

    @Test func numbersAreShort() {
        #expect(
            [0, 0.04, 0.5, 3, 9.94, 10, 9999, 12_345, 999_949, 1_234_567].map(Amount.count)
                == ["0", "0", "0.5", "3", "9.9", "10", "9999", "12.3k", "999.9k", "1.23M"])
        #expect(
            [0.0000124, 0.0009994, 0.0034, 0.0999, 0.25, 1.25, nil].map(Amount.time)
                == ["12 µs", "999 µs", "3.4 ms", "99.9 ms", "250 ms", "1.3 s", "-"])
        #expect([59, 61, 3700, 90_000].map(Amount.duration) == ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"])
        #expect([10, 2048, 20_971_520, 2e9].map(Amount.bytes) == ["10 B", "2 KiB", "20.0 MiB", "1.9 GiB"])
        #expect(TopScreen.sparkline([nil, 0, 4, 8], width: 6) == "   ▁▅█")
        #expect(TopScreen.sparkline([], width: -3) == "")
    }
}
