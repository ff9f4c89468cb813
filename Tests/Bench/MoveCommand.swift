import ArgumentParser
import Glibc

/// Has the daemon move a collection to the place that its configuration file names by now, and measures the speed.
struct MoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Measure how fast a collection is moved to another backend.")

    @Option(help: "Path of crudd's socket; waits for a server that is starting.")
    var socket: String
    @Option(help: "The collection; its originals are dropped in the end.")
    var collection = "moved"
    @Option(help: "Measure the first so many seconds of the move; default: all of it.")
    var seconds: Double?
    @Option(help: "The concurrent load, for the results.")
    var beside: String?

    private struct Reload: Decodable { var moves: [String] }
    private struct Dropped: Decodable { var dropped: Bool }
    private struct Status: Decodable {
        struct Move: Decodable {
            var copied: Int
            var total: Int
            var phase: String
            var reason: String?
        }
        var moves: [Move]
    }

    /// The daemon is asked this often how far it is.
    private static let pauseMicroseconds: UInt32 = 5000

    func run() throws {
        var exchange = try FrameExchange(socket, connections: 1)
        let begin = MonotonicClock.now()
        func elapsed() -> Double { Double(MonotonicClock.now() - begin) / 1e9 }
        let reload: Reload = try exchange.call("daemon.reload", #"{"move":true}"#)
        guard reload.moves == [collection] else { throw BenchError("these are moved: \(reload.moves)") }
        var (copied, total) = (0, 0)
        var end: Double?
        while true {
            let status: Status = try exchange.call("daemon.status")
            guard let move = status.moves.first else { break }
            if move.phase == "failed" || move.phase == "suspended" {
                throw BenchError("the move is \(move.phase): \(move.reason ?? "")")
            }
            (copied, total) = end == nil ? (move.copied, move.total) : (copied, total)
            if end == nil, let seconds, elapsed() >= seconds { end = elapsed() }
            usleep(Self.pauseMicroseconds)
        }
        // Where it has ended before that, all of it counts.
        let move = Finding.Move(records: end == nil ? total : copied, seconds: end ?? elapsed(), beside: beside)
        print(try Finding.move(move).line())
        StandardError.print(move.summary)
        let drop: Dropped = try exchange.call("collection.drop", #"{"collection":"\#(collection)","moved":true}"#)
        guard drop.dropped else { throw BenchError("there are no originals") }
    }
}

extension Finding.Move {
    var recordsPerSecond: Double { Double(records) / seconds }

    /// One line for people.
    var summary: String {
        "a move \(beside.map { "beside \($0)" } ?? "on an idle daemon"): "
            + "\((recordsPerSecond / 1000).text(digits: 1)) k records/s (\(records) in \(seconds.text(digits: 2)) s)"
    }
}
