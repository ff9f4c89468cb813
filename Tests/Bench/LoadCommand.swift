import ArgumentParser
import CRUDHistogram

/// Measures one workload and prints one line of JSON to stdout and one for people to stderr.
struct LoadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load", abstract: "Measure one workload; also fills and verifies a data set.")

    @Option(help: "Path of the server's socket; waits for a server that is starting.")
    var socket: String
    @Option(name: .customLong("protocol"), help: "crudd, resp or echo.")
    var language: Workload.Language
    @Option(help: "read, create, upsert, increment, query or scan; the last three for crudd only.")
    var operation: Workload.Operation = .read
    @Option(help: "rising, random, zipfian, or hot: random among the first \(Workload.hotRecords).")
    var ids: Workload.Order = .random
    @Option(help: "Collection of crudd's records.")
    var collection = "bench"
    @Option(name: .shortAndLong, help: "Connections.")
    var connections = 1
    @Option(help: "Send requests on so many of the connections only.")
    var active: Int?
    @Option(name: .shortAndLong, help: "Requests in flight on each connection.")
    var depth = 1
    @Option(help: "Records in the data set.")
    var records: UInt64 = 1_000_000
    @Option(help: "First record of the data set.")
    var offset: UInt64 = 0
    @Option(help: "Bytes of a value.")
    var valueBytes = 200
    @Option(help: "First record of creates.")
    var first: UInt64 = 0
    @Option(help: "Seconds until created records expire; for crudd only.")
    var ttl: Int?
    @Option(help: "Seed of random reads.")
    var seed: UInt64 = 1
    @Option(help: "Seconds of warm-up.")
    var warmUp = 1.0
    @Option(help: "Seconds to measure.")
    var seconds = 5.0
    @Option(help: "Send so many requests instead, without warm-up.")
    var requests: Int?
    @Option(help: "Send a round of requests every so many milliseconds, and none in between.")
    var every: Int?
    @Flag(help: "Check the value in every reply to a read (default: of a sample).")
    var checkAll = false
    @Flag(help: "Count creates that fail with unavailable or outcome_unknown (default: they end the run).")
    var mayFail = false
    @Flag(help: "Record the requests of each second.")
    var pace = false
    @Option(help: "A file whose size is read every second.")
    var watch: String?
    @Option(help: "A process of the server, whose processor time is measured; any number of times.")
    var server: [Int32] = []
    @Option(help: "Name of the target in the results; default: the protocol.")
    var target: String?
    @Option(help: "The CPUs of client and server, for the results.")
    var placement = "free"
    @Option(help: "Number of the round in the results.")
    var round = 1
    @Option(help: "The concurrent load, for the results.")
    var beside: String?
    @Option(help: "How often the child of a backend is killed during this run, for the results.")
    var kills: Int?
    @Option(help: "The experiment of which this run is part, for the results.")
    var experiment: Experiment?
    @Flag(help: "Something disturbs the collection during this run, for the results.")
    var disturbed = false

    func validate() throws {
        guard !mayFail || (language == .crudd && operation == .create) else {
            throw ValidationError("--may-fail is for crudd's creates")
        }
        guard language == .crudd || [.read, .create, .upsert].contains(operation) else {
            throw ValidationError("--operation \(operation.rawValue) is for crudd only")
        }
        guard ttl == nil || language == .crudd else { throw ValidationError("--ttl is for crudd only") }
        guard connections >= 1, 1...connections ~= active ?? connections else {
            throw ValidationError("--connections must be at least 1, and --active at most as many")
        }
        guard 1...LoadConnection.maximumDepth ~= depth else {
            throw ValidationError("--depth must be 1 to \(LoadConnection.maximumDepth)")
        }
        guard RequestTemplate.minimumValueBytes...1 << 20 ~= valueBytes else {
            throw ValidationError("--value-bytes must be \(RequestTemplate.minimumValueBytes) to \(1 << 20)")
        }
        guard 1...1_000_000_000 ~= records else { throw ValidationError("--records must be 1 to 1000000000") }
        guard first < 1 << 32, offset < 1 << 32 else {
            throw ValidationError("--first and --offset must be less than \(1 << 32)")
        }
        guard warmUp >= 0, seconds > 0 else { throw ValidationError("--seconds must be positive") }
        guard (requests ?? 1) >= 1, (every ?? 1) >= 1 else {
            throw ValidationError("--requests and --every must be at least 1")
        }
    }

    func run() throws {
        let workload = Workload(
            socket: socket, language: language, operation: operation, order: ids, collection: collection,
            connections: connections, active: active ?? connections, depth: depth, records: records, offset: offset,
            valueBytes: valueBytes, first: first, seed: seed, checksEveryValue: checkAll, ttl: ttl, mayFail: mayFail)
        let schedule = LoadGenerator.Schedule(
            warmUpSeconds: warmUp, seconds: seconds, requests: requests, roundMilliseconds: every, keepsPace: pace,
            watchedFile: watch, servers: server)
        var generator = try LoadGenerator(workload, schedule)
        let outcome = try generator.run()
        let latencies = outcome.latencies
        let measurement = Finding.Measurement(
            target: target ?? language.rawValue, operation: operation.rawValue, ids: ids.rawValue,
            connections: connections, active: active, depth: depth, valueBytes: valueBytes, placement: placement,
            round: round, requests: outcome.requests, seconds: outcome.seconds,
            requestsPerSecond: Double(outcome.requests) / outcome.seconds,
            p50Microseconds: latencies.microseconds(0.5), p99Microseconds: latencies.microseconds(0.99),
            p999Microseconds: latencies.microseconds(0.999),
            clientMicroseconds: outcome.clientSeconds * 1e6 / Double(max(outcome.requests, 1)),
            serverMicroseconds: server.isEmpty
                ? nil : outcome.serverSeconds * 1e6 / Double(max(outcome.requests, 1)),
            beside: beside, pace: pace ? outcome.pace : nil,
            watchedBytesMaximum: watch == nil ? nil : outcome.watchedBytesMaximum, kills: kills,
            unavailable: mayFail ? outcome.failures[.unavailable, default: 0] : nil,
            outcomeUnknown: mayFail ? outcome.failures[.outcomeUnknown, default: 0] : nil,
            longestPauseMilliseconds: mayFail ? outcome.longestPauseSeconds * 1e3 : nil,
            experiment: experiment, isDisturbed: experiment == nil ? nil : disturbed)
        print(try Finding.measurement(measurement).line())
        StandardError.print(measurement.summary)
    }
}

extension Finding.Measurement {
    /// One line for people.
    var summary: String {
        "\(target) \(operation) \(ids) c\(connections) d\(depth): \((requestsPerSecond / 1000).text(digits: 1)) k/s, "
            + "p50 \(p50Microseconds.text(digits: 0)), p99 \(p99Microseconds.text(digits: 0)), "
            + "p99.9 \(p999Microseconds.text(digits: 0)) µs, "
            + "client \((clientMicroseconds ?? 0).text(digits: 2)) µs a request"
            + (serverMicroseconds.map { ", server \($0.text(digits: 2))" } ?? "")
    }
}
