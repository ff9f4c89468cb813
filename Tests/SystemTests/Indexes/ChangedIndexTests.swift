import CRUDTestSupport
import Testing

/// Reloads that change the indexes of a collection, and nothing else of it.
@Suite struct ChangedIndexTests {
    private static func found(
        _ connection: Connection, _ property: String, _ number: Int
    ) throws -> (ids: [String]?, index: String?, error: String?) {
        let filter = #"{"op":"=","args":[{"property":"\#(property)"},\#(number)]}"#
        let reply = try connection.call("record.query", #"{"collection":"c","filter":\#(filter),"explain":true}"#)
        return (
            reply.result?["records"]?.elements?.compactMap { $0["id"]?.string },
            reply.result?["plan"]?["index"]?.string, reply.error?.name
        )
    }

    /// A move that cannot begin to copy tries again and again, and opens the collection where it is served from.
    @Test func aSuspendedMoveLeavesThem() throws {
        let cluster = "cluster: {plugin: postgresql, options: {connection: \"host=$DIRECTORY/nowhere\"}}"
        func configuration(_ backend: String, _ index: String) -> Configuration {
            MovePlaces.configuration(
                "{backend: \(backend), indexes: [\(index)], changes: true}", backends: cluster)
        }
        let daemon = try Daemon(configuration("main", "n"))
        let connection = try daemon.connect()
        for id in 0..<100 {
            #expect(try connection.create("c", "\(id)", #"{"n":\#(id),"m":\#(100 - id)}"#).result != nil)
        }
        let page = try connection.call("collection.changes", #"{"collection":"c","after":"now"}"#)
        let cursor = try #require(page.result?["cursor"]?.text)
        try daemon.installation.configure(configuration("cluster", "n"))
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves { $0.first?["phase"]?.string == "suspended" }

        try daemon.installation.configure(configuration("cluster", "m"))
        #expect(try connection.reload() == ["collection c: indexes changed"])
        let deadline = Deadline()
        while try Self.found(connection, "m", 7).index != "m" { try #require(!deadline.hasPassed) }
        // While the move tries again, and writes come.
        let end = Deadline(.seconds(2))
        var number = 0
        while !end.hasPassed {
            number += 1
            let item = #"{"n":\#(number),"m":7}"#
            #expect(try connection.upsert("c", "new", item).result != nil)
            let found = try Self.found(connection, "m", 7)
            try #require(found.ids == ["93", "new"] && found.index == "m", "\(number): \(found)")
        }
        try connection.awaitMoves { $0.first?["phase"]?.string == "suspended" }
        let changes = try connection.call("collection.changes", #"{"collection":"c","after":\#(cursor)}"#)
        #expect(changes.result?["changes"]?.elements?.compactMap { $0["id"]?.string } == ["new"], "\(changes)")
    }

    /// Keys are made by event loops and stored by the backend: writes on their way must not get into the wrong index.
    @Test(arguments: ["main", "kid"])
    func writesInFlightAreFoundByThem(backend: String) throws {
        func configuration(_ indexes: String) -> Configuration {
            var configuration = MovePlaces.configuration("{backend: \(backend), indexes: [\(indexes)]}")
            configuration.loops = 2
            return configuration
        }
        let daemon = try Daemon(configuration("n, m"))
        let administrator = try daemon.connect()
        let writers = try (0..<4).map { _ in try daemon.connect() }
        let (rounds, count) = (8, 100)
        for round in 0..<rounds {
            for (lane, writer) in writers.enumerated() {
                let requests = (0..<count).map { number in
                    let value = (round * 4 + lane) * count + number
                    let item = #"{"n":\#(value),"m":\#(-value)}"#
                    return Connection.request(
                        "record.upsert", Connection.params("c", "\(value)", item: item), id: "\(number)")
                }
                try writer.send(requests.flatMap { Connection.frame($0) })
            }
            try daemon.installation.configure(configuration(round.isMultiple(of: 2) ? "m, n" : "n, m"))
            #expect(try !administrator.reload().isEmpty)
            for writer in writers {
                for _ in 0..<count { #expect(try writer.receive().result != nil) }
            }
        }
        for value in stride(from: 0, to: rounds * 4 * count, by: 7) {
            for (property, number) in [("n", value), ("m", -value)] {
                let found = try Self.found(administrator, property, number)
                #expect(found.ids == ["\(value)"], "\(property) \(found)")
            }
        }
    }
}
