import ArgumentParser
import FoundationEssentials
import Glibc

/// Starts a daemon of its own, makes collections, and measures what a drop, a reload of one line and a start take with
/// so many.
struct CollectionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "collections", abstract: "Measure drops, reloads and starts with many collections.")

    @Option(help: "How many collections.")
    var count = 10_000
    @Option(help: "How often a collection is dropped, and a line reloaded.")
    var times = 500
    @Option(help: "How often the daemon is started.")
    var starts = 5
    @Option(help: "Path of crudd's socket.")
    var socket: String
    @Option(help: "Path of the socket for READY=1.")
    var notifySocket: String
    @Option(help: "The configuration file; its line `changed: {backend: main}` is the one that is changed.")
    var file: String
    @Argument(parsing: .captureForPassthrough, help: "The daemon and its arguments.")
    var command: [String]

    private struct Dropped: Decodable { var dropped: Bool }
    private struct Reloaded: Decodable { var changes: [String] }
    private struct Nothing: Decodable {}

    /// How many collections are made at a time.
    private static let batch = 100
    /// How often both are done before the measurement.
    private static let warmUp = 50

    func run() throws {
        let notifications = try ReadyNotifications(at: notifySocket)
        var crowd = Finding.Crowd(
            collections: count, dropMilliseconds: 0, reloadMilliseconds: 0, readyMilliseconds: [], grownKiB: 0)
        let first = try MeasuredDaemon(command, notifications)
        var exchange = try FrameExchange(socket, connections: 1)
        try fill(&exchange)
        _ = try measure(Self.warmUp, &exchange, notifications)
        let resident = try first.residentKiB
        (crowd.dropMilliseconds, crowd.reloadMilliseconds) = try measure(times, &exchange, notifications)
        crowd.grownKiB = try first.residentKiB - resident
        try first.stop()
        for _ in 0..<starts {
            let daemon = try MeasuredDaemon(command, notifications)
            crowd.readyMilliseconds.append(daemon.readyMilliseconds)
            try daemon.stop()
        }
        print(try Finding.crowd(crowd).line())
        StandardError.print(crowd.summary)
    }

    private func fill(_ exchange: inout FrameExchange) throws {
        for start in stride(from: 0, to: count, by: Self.batch) {
            let numbers = start..<min(start + Self.batch, count)
            for number in numbers {
                try exchange.send("record.upsert", #"{"collection":"many \#(number)","id":"a","item":1}"#, on: 0)
            }
            for frame in try exchange.receive(numbers.count)
            where String(decoding: frame.text, as: UTF8.self).contains(#""error""#) {
                throw BenchError("record.upsert: \(String(decoding: frame.text, as: UTF8.self))")
            }
        }
        let _: Nothing = try exchange.call("record.upsert", #"{"collection":"changed","id":"a","item":1}"#)
    }

    /// - Returns: the median of the drops' milliseconds, and that of the reloads'.
    private func measure(
        _ times: Int, _ exchange: inout FrameExchange, _ notifications: ReadyNotifications
    ) throws -> (Double, Double) {
        let text = String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
        let plain = "changed: {backend: main}"
        let parts = text.split(separator: plain, maxSplits: 1)
        guard parts.count == 2 else { throw BenchError("\(file) lacks the line \(plain)") }
        defer { try? Data(text.utf8).write(to: URL(filePath: file)) }
        var drops: [Double] = []
        var reloads: [Double] = []
        for number in 0..<times {
            notifications.discard()
            let _: Nothing = try exchange.call("record.upsert", #"{"collection":"dropped","id":"a","item":1}"#)
            var begin = MonotonicClock.now()
            let drop: Dropped = try exchange.call("collection.drop", #"{"collection":"dropped"}"#)
            drops.append(Double(MonotonicClock.now() - begin) / 1e6)
            guard drop.dropped else { throw BenchError("nothing was dropped") }
            let line = number.isMultiple(of: 2) ? "changed: {backend: main, indexes: [n]}" : plain
            try Data("\(parts[0])\(line)\(parts[1])".utf8).write(to: URL(filePath: file))
            begin = MonotonicClock.now()
            let reload: Reloaded = try exchange.call("daemon.reload")
            reloads.append(Double(MonotonicClock.now() - begin) / 1e6)
            guard reload.changes.count == 1 else { throw BenchError("these have changed: \(reload.changes)") }
        }
        return (Report.median(drops), Report.median(reloads))
    }
}

extension Finding.Crowd {
    /// One line for people.
    var summary: String {
        "\(collections) collections: a drop \(dropMilliseconds.text(digits: 2)) ms, a reload "
            + "\(reloadMilliseconds.text(digits: 2)) ms, ready after "
            + "\(Report.median(readyMilliseconds).text(digits: 1)) ms, grown by \(grownKiB) KiB"
    }
}
