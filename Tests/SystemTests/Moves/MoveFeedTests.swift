import CRUDTestSupport
import Testing

/// Collections that are moved to a place where they have a feed of changes.
@Suite struct MoveFeedTests {
    /// The place that a collection leaves need not be able to keep a feed, and the log does not blame its options.
    @Test func theFeedBeginsInTheNewPlace() throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: files}"))
        let connection = try daemon.connect()
        for id in 0..<10 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        try daemon.installation.configure(text: MovePlaces.configuration("{backend: main, changes: true}").text)
        #expect(try connection.reloadMoving() == ["c"])
        try connection.awaitMoves()
        let page = try connection.call("collection.changes", #"{"collection":"c"}"#).result
        #expect(page?["changes"]?.elements?.count == 10)
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("feed of changes") }
        #expect(lines.count == 1, "\(daemon.log)")
        #expect(lines.first?.contains(#"backend files: collection "c" has no feed of changes"#) == true)
        #expect(lines.first?.contains("where the collection is being moved to") == true)
        #expect(!daemon.log.contains("options"), "\(daemon.log)")
    }
}
