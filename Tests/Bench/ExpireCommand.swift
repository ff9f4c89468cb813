import ArgumentParser
import FoundationEssentials
import Glibc

/// Fills a collection with records that all expire at one instant, and prints it, in milliseconds since 1970.
struct ExpireCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "expire", abstract: "Create records that expire at the same instant, which is printed.")

    @Option(help: "Path of crudd's socket; waits for a server that is starting.")
    var socket: String
    @Option(help: "The collection.")
    var collection = "expiring"
    @Option(help: "Records to create.")
    var records = 1_000_000
    @Option(help: "Bytes of a value.")
    var valueBytes = 200
    @Option(help: "Seconds from the first create to the instant.")
    var seconds = 60.0

    /// Records of a request, which the socket's buffer takes.
    private static let batch = 200

    func run() throws {
        var exchange = try FrameExchange(socket, connections: 1)
        let instant = Date(timeIntervalSinceNow: seconds)
        let value = RequestTemplate(RequestTemplate.value(bytes: valueBytes), framed: false)
        for first in stride(from: 0, to: records, by: Self.batch) {
            let rest = Int((instant.timeIntervalSinceNow * 1000).rounded())
            guard rest > 0 else { throw BenchError("\(first) records only in \(seconds.text(digits: 0)) s") }
            let ttl = "\(rest / 1000).\(String(String(1000 + rest % 1000).dropFirst()))"
            let operations = (first..<min(first + Self.batch, records)).map { number in
                let id = RequestTemplate.base + UInt64(number)
                return #"{"op":"create","collection":"\#(collection)","id":"\#(id)","#
                    + #""item":\#(value.text(number: UInt64(number))),"ttl":\#(ttl)}"#
            }
            let _: Batch = try exchange.call("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
        }
        print(Int((instant.timeIntervalSince1970 * 1000).rounded()))
    }

    private struct Batch: Decodable {
        struct Outcome: Decodable {
            struct Result: Decodable { var revision: String }
            var result: Result
        }
        var results: [Outcome]
    }
}

extension Finding.Expiration {
    /// One line for people.
    var summary: String {
        "\(records) records that expire at once are gone from the storage after \(seconds.text(digits: 1)) s "
            + "(promised ≤ \(Promise.removalSeconds.text(digits: 0))); resident memory grows by at most "
            + "\((Double(residentBytes) / 1_048_576).text(digits: 1)) MiB"
    }
}
