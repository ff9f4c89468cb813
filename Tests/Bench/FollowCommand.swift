import ArgumentParser
import CRUDHistogram
import FoundationEssentials

/// Measures how soon after a write's reply those who follow the collection get theirs.
///
/// In each round all followers wait; then one record is created. A ping behind the request of a follower shows that the
/// daemon has come to it. Replies are only stamped with the time while others are awaited, and decoded afterwards.
struct FollowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "follow", abstract: "Measure how soon followers of a collection get a write.")

    @Option(help: "Path of crudd's socket; waits for a server that is starting.")
    var socket: String
    @Option(help: "A collection that remembers its changes.")
    var collection = "changed"
    @Option(help: "Connections that follow it.")
    var followers = 200
    @Option(help: "Writes.")
    var rounds = 100
    @Option(help: "First record of creates.")
    var first: UInt64 = 0

    private struct Reply: Decodable {
        struct Result: Decodable { var cursor: String? }
        var result: Result?
    }

    func validate() throws {
        guard followers >= 1, rounds >= 1 else { throw ValidationError("--followers and --rounds must be at least 1") }
    }

    func run() throws {
        var exchange = try FrameExchange(socket, connections: followers + 1)
        let writer = followers
        var cursors = [String](repeating: "now", count: followers)
        var (all, last) = (LogLinearHistogram(), LogLinearHistogram())
        for round in -1..<rounds {
            for follower in 0..<followers {
                let wait = round < 0 ? "" : #","wait":60"#
                let params = #"{"collection":"\#(collection)","after":"\#(cursors[follower])"\#(wait)}"#
                try exchange.send("collection.changes", params, on: follower)
                if round >= 0 { try exchange.send("daemon.ping", "{}", on: follower) }
            }
            let replies = try exchange.receive(followers)
            if round >= 0 {
                let id = "\(RequestTemplate.base + first + UInt64(round))"
                let params = #"{"collection":"\#(collection)","id":"\#(id)","item":{"number":\#(round)}}"#
                try exchange.send("record.create", params, on: writer)
            }
            let changes = round < 0 ? replies : try exchange.receive(followers + 1)
            let written = changes.first { $0.connection == writer }?.time ?? 0
            var slowest: UInt64 = 0
            for change in changes where change.connection != writer {
                let reply = try JSONDecoder().decode(Reply.self, from: Data(change.text))
                guard let cursor = reply.result?.cursor else {
                    throw BenchError("no changes: \(String(decoding: change.text, as: UTF8.self))")
                }
                cursors[change.connection] = cursor
                let latency = change.time > written ? change.time - written : 0
                slowest = max(slowest, latency)
                if round >= 0 { all.add(latency) }
            }
            if round >= 0 { last.add(slowest) }
        }
        let finding = Finding.Following(
            followers: followers, writes: rounds, p50Microseconds: all.microseconds(0.5),
            p99Microseconds: all.microseconds(0.99), lastP99Microseconds: last.microseconds(0.99))
        print(try Finding.following(finding).line())
        StandardError.print(finding.summary)
    }
}

extension Finding.Following {
    /// One line for people.
    var summary: String {
        "\(followers) followers get a write after \(p50Microseconds.text(digits: 0)) µs (p50), "
            + "\(p99Microseconds.text(digits: 0)) µs (p99); the last of them after "
            + "\(lastP99Microseconds.text(digits: 0)) µs (p99)"
    }
}
