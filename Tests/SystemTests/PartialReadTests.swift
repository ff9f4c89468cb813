import CRUDTestSupport
import Testing

/// Reads of many records for which there is room only in part.
@Suite struct PartialReadTests {
    enum Place: CaseIterable {
        /// On the event loop, as far as that takes little time.
        case loop
        case thread, child
    }

    private static func daemon(_ place: Place) throws -> Daemon {
        let isolation = place == .child ? "isolation: process, " : ""
        let installation = try Installation(
            Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    counting: {plugin: scripted, \(isolation)cache: false}
                    """, collections: "many: {backend: counting}\n\"*\": {backend: main}",
                limits: "session_bytes: 4MiB\nframe_bytes: 2MiB\nitem_bytes: 1MiB\nrequest_timeout: 5m", loops: 1))
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=(CRUDD_CAN_READ_CONCURRENTLY|CRUDD_CAN_READ_FAST)"],
            to: "\(installation.pluginDirectory)/scripted.so")
        return try Daemon(on: installation)
    }

    private static func itemsRead(_ connection: Connection) throws -> Int {
        try #require(try connection.item("many", "emitted:").flatMap { Int($0) })
    }

    /// A plugin that counts shows that each is read once, but for the first that there is no room for.
    @Test(arguments: Place.allCases) func recordsAreReadOnce(_ place: Place) throws {
        let daemon = try Self.daemon(place)
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        let (count, bytes) = place == .loop ? (100, 15_000) : (999, 1500)
        let items = (0..<count).map { "\"\($0)" + String(repeating: "x", count: bytes) + "\"" }
        let created = try administrator.pipeline(
            items.enumerated().map { ("record.create", Connection.params("many", "\($0.offset)", item: $0.element)) })
        #expect(created.allSatisfy { $0.result != nil })
        let long = "\"" + String(repeating: "x", count: 1_000_000) + "\""
        #expect(try administrator.create("long", "a", long).result != nil)
        let ids = (0..<count).reversed().map { "\"\($0)\"" }.joined(separator: ",")
        let readMany = Connection.request("record.readMany", #"{"collection":"many","ids":[\#(ids),"none"]}"#, id: "1")
        let read = Connection.request("record.read", Connection.params("long", "a"), id: "2")

        /// Takes the replies to so many long reads, and that to the read of many.
        func expectReplies(longReads: Int) throws {
            var longReads = longReads
            for _ in 0...longReads {
                let reply = try connection.receive()
                if reply.id.text == "2" {
                    longReads -= 1
                    continue
                }
                let found = reply.result?["records"]?.elements?.map { $0["item"]?.text }
                // Not the long items themselves.
                let isWhole = found == items.reversed()
                #expect(isWhole, "\(found?.count ?? 0) records, \(reply.error as Any)")
                #expect(reply.result?["missing"]?.text == #"["none"]"#)
            }
            #expect(longReads == 0)
        }

        // Without need, what is read on the loop goes on on a thread.
        try connection.sendFrame(readMany)
        try expectReplies(longReads: 0)
        let before = try Self.itemsRead(administrator)
        #expect(before == (place == .loop ? count + 1 : count))

        // The replies that are not read leave room for a part.
        for _ in 0..<3 { try connection.sendFrame(read) }
        try connection.sendFrame(readMany)
        let deadline = Deadline()
        while try Self.itemsRead(administrator) == before { try #require(!deadline.hasPassed) }
        try expectReplies(longReads: 3)
        #expect(try Self.itemsRead(administrator) == before + count + 1)
    }
}
