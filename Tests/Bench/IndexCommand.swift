import ArgumentParser
import Glibc

/// Has the daemon build the indexes that its configuration file names by now, and measures how long it takes.
struct IndexCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index", abstract: "Measure how long new indexes of a collection are built.")

    @Option(help: "Path of crudd's socket; waits for a server that is starting.")
    var socket: String
    @Option(help: "The collection.")
    var collection = "bench"
    @Option(help: "A property that gets an index; any number of times.")
    var property: [String]
    @Option(help: "The collection's backend, in a child.")
    var backend = "main"

    private struct Reload: Decodable { var changes: [String] }
    private struct Backends: Decodable {
        struct Backend: Decodable {
            var name: String
            var restarts: Int?
        }
        var backends: [Backend]
    }
    private struct Description: Decodable {
        struct Index: Decodable { var property: String }
        var count: Int
        var indexing: [Index]?
    }
    private struct Page: Decodable {
        struct Plan: Decodable { var index: String? }
        var plan: Plan
    }

    /// The daemon is asked this often how far it is. To be asked means to count the records.
    private static let pauseMicroseconds: UInt32 = 500_000

    func run() throws {
        var exchange = try FrameExchange(socket, connections: 1)
        let restarts = try restarts(&exchange)
        let begin = MonotonicClock.now()
        let reload: Reload = try exchange.call("daemon.reload")
        guard reload.changes.count == 1 else { throw BenchError("this has changed: \(reload.changes)") }
        var description = try describe(&exchange)
        while description.indexing?.isEmpty == false {
            usleep(Self.pauseMicroseconds)
            description = try describe(&exchange)
        }
        let seconds = Double(MonotonicClock.now() - begin) / 1e9
        for property in property {
            let filter = #"{"op":"=","args":[{"property":"\#(property)"},0]}"#
            let page: Page = try exchange.call(
                "record.query", #"{"collection":"\#(collection)","filter":\#(filter),"explain":true}"#)
            guard page.plan.index == property else { throw BenchError("the index \(property) does not serve") }
        }
        let build = Finding.Build(
            indexes: property.count, records: description.count, seconds: seconds,
            restarts: try self.restarts(&exchange) - restarts)
        print(try Finding.build(build).line())
        StandardError.print(build.summary)
    }

    private func describe(_ exchange: inout FrameExchange) throws -> Description {
        try exchange.call("collection.describe", #"{"collection":"\#(collection)"}"#)
    }

    private func restarts(_ exchange: inout FrameExchange) throws -> Int {
        let list: Backends = try exchange.call("backend.list")
        guard let restarts = list.backends.first(where: { $0.name == backend })?.restarts else {
            throw BenchError("there is no backend \(backend) in a child")
        }
        return restarts
    }
}

extension Finding.Build {
    /// One line for people.
    var summary: String {
        "\(indexes) indexes of \(records) records in a child with `call_timeout: 1s` serve after "
            + "\(seconds.text(digits: 1)) s; restarts of the child: \(restarts) (promised 0)"
    }
}
