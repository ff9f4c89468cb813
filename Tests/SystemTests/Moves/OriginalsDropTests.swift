import CRUDTestSupport
import Testing

/// A request that takes long reads the collection where it was when it began. What a move leaves there is removed only
/// after that.
@Suite struct OriginalsDropTests {
    private static let count = 1500
    private static let counts = 100

    @Test func countsMissNoRecordOfOriginalsThatAreDropped() throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: files, format: xml}"))
        let connection = try daemon.connect()
        for start in stride(from: 0, to: Self.count, by: 100) {
            let requests = (start..<start + 100).map { id in
                ("record.create", #"{"collection":"c","id":"\#(id)","item":{"n":\#(id)}}"#)
            }
            for reply in try connection.pipeline(requests) { #expect(reply.result != nil) }
        }
        // Some are read at every moment, from wherever the collection was when they began.
        let clients = try (0..<3).map { _ in try daemon.connect() }
        for client in clients {
            for id in 0..<Self.counts {
                let params = #"{"collection":"c","filter":{"op":">=","args":[{"property":"n"},0]}}"#
                try client.sendFrame(Connection.request("record.count", params, id: "\(id)"))
            }
        }
        for rule in ["{backend: main}", "{backend: files, format: xml}", "{backend: other}"] {
            try daemon.installation.configure(MovePlaces.configuration(rule))
            try connection.reloadMoving()
            try connection.awaitMoves()
            #expect(try connection.dropOriginals() == true)
            try connection.awaitRemovals()
        }
        for client in clients {
            let replies = try (0..<Self.counts).map { _ in try client.receive() }
            #expect(Set(replies.map { $0.result?["count"]?.integer }) == [Self.count])
        }
    }
}
