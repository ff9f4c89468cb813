import CRUDTestSupport
import Glibc
import Testing

/// What is seen when, whichever event loops the connections are on.
@Suite(.daemon(loops: [1, 2, 4])) struct OrderTests {
    private static let loops = [1, 2, 4]

    @Test(arguments: loops)
    func pipelinedRequestsTakeEffectInTheOrderSent(loops: Int) throws {
        let connection = try Daemon.shared(loops: loops).connect()
        for round in 0..<50 {
            let id = "\(round)"
            let read = ("record.read", Connection.params("pipeline", id))
            let replies = try connection.pipeline([
                read,
                ("record.create", Connection.params("pipeline", id, item: "1")), read,
                ("record.update", Connection.params("pipeline", id, item: "2")), read,
                ("record.upsert", Connection.params("pipeline", id, item: "3")), read,
                ("record.delete", Connection.params("pipeline", id)), read,
                ("record.create", Connection.params("pipeline", id, item: "4")), read,
                ("record.exists", Connection.params("pipeline", id)),
                ("record.readMany", #"{"collection":"pipeline","ids":["\#(id)"]}"#),
            ])
            #expect(replies[0].error?.name == "record_not_found")
            #expect([2, 4, 6].map { replies[$0].result?["item"]?.text } == ["1", "2", "3"])
            #expect(replies[7].result?.text == "{}")
            #expect(replies[8].error?.name == "record_not_found")
            #expect(replies[10].result?["item"]?.text == "4")
            #expect(replies[11].result?["exists"]?.boolean == true)
            #expect(replies[12].result?["records"]?.elements?.first?["item"]?.text == "4")
        }
    }

    /// What waits for what the session has sent before is not overtaken by a batch array, on its collection.
    @Test(arguments: loops)
    func aBatchArrayDoesNotOvertakeWhatWaits(loops: Int) throws {
        let connection = try Daemon.shared(loops: loops).connect()
        for round in 0..<50 {
            let params = { (item: Int) in Connection.params("arrays", "\(round)", item: "\(item)") }
            let read = Connection.request("record.read", Connection.params("arrays", "\(round)"), id: "2")
            let batch = #"{"operations":[{"op":"upsert",\#(params(3).dropFirst())]}"#
            let frames = [
                Connection.request("record.upsert", params(1), id: "1"), read,
                "[\(Connection.request("record.upsert", params(2), id: "3"))]", read,
                "[\(Connection.request("record.batch", batch, id: "4"))]", read,
            ]
            try connection.send(frames.flatMap { Connection.frame($0) })
            var found: [Int] = []
            for _ in frames {
                let json = try JSON(parsing: try #require(try connection.receiveFrame()))
                found += [json["result"]?["item"]?.integer].compactMap(\.self)
            }
            #expect(found == [1, 2, 3])
        }
    }

    @Test(arguments: loops)
    func aReadBetweenTwoWritesSeesTheFirstOnly(loops: Int) throws {
        let connection = try Daemon.shared(loops: loops).connect()
        _ = try connection.upsert("between", "a", "-1")
        let requests = (0..<400).flatMap { number in
            [
                ("record.upsert", Connection.params("between", "a", item: "\(number)")),
                ("record.read", Connection.params("between", "a")),
            ]
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<400 {
            let written = replies[2 * number].result?["revision"]?.string
            let record = replies[2 * number + 1].result
            #expect(record?["item"]?.integer == number)
            #expect(record?["revision"]?.string == written)
        }
    }

    @Test(arguments: loops)
    func conditionalWritesFollowEachOther(loops: Int) throws {
        let connection = try Daemon.shared(loops: loops).connect()
        let first = try #require(try connection.create("chain", "a", "1").result?["revision"]?.string)
        let replies = try connection.pipeline([
            ("record.update", Connection.params("chain", "a", item: "2", ifRevision: first)),
            ("record.update", Connection.params("chain", "a", item: "3", ifRevision: first)),
            ("record.delete", Connection.params("chain", "a")),
            ("record.create", Connection.params("chain", "a", item: "4")),
            ("record.create", Connection.params("chain", "a", item: "5")),
        ])
        let second = replies[0].result?["revision"]?.string
        #expect(second != nil)
        #expect(replies[1].error?.details?["revision"]?.string == second)
        #expect(replies[2].result?.text == "{}")
        #expect(replies[3].result != nil)
        #expect(replies[4].error?.name == "record_exists")
        #expect(try connection.item("chain", "a") == "4")
    }

    @Test(arguments: loops)
    func aWriteThatHasItsReplyIsSeenByEverybody(loops: Int) throws {
        let writer = try Daemon.shared(loops: loops).connect()
        let readers = try (0..<3).map { _ in try Daemon.shared(loops: loops).connect() }
        _ = try writer.upsert("seen", "a", "-1")
        for number in 0..<300 {
            let revision = try writer.upsert("seen", "a", "\(number)").result?["revision"]?.string
            for reader in readers {
                let record = try reader.read("seen", "a").result
                #expect(record?["item"]?.integer == number)
                #expect(record?["revision"]?.string == revision)
            }
        }
        #expect(try writer.delete("seen", "a").result != nil)
        for reader in readers { #expect(try reader.exists("seen", "a") == false) }
    }

    /// The first reads of a collection go to a thread that opens it, later ones need no thread.
    @Test(arguments: loops)
    func laterReadsDoNotOvertakeThoseThatOpenACollection(loops: Int) throws {
        let writer = try Daemon.shared(loops: loops).connect()
        let readers = try (0..<3).map { _ in try Daemon.shared(loops: loops).connect() }
        for round in 0..<30 {
            let collection = "opened \(round)"
            _ = try writer.upsert(collection, "a", "0")
            for number in 1...10 {
                let params = Connection.params(collection, "a", item: "\(number)")
                try writer.sendFrame(Connection.request("record.upsert", params, id: "1"))
                for reader in readers {
                    let read = Connection.params(collection, "a")
                    try reader.sendFrame(Connection.request("record.read", read, id: "\(number)"))
                }
            }
            for reader in readers {
                let replies = try (0..<10).map { _ in try reader.receive() }
                    .sorted { ($0.id.integer ?? 0) < ($1.id.integer ?? 0) }
                let values = replies.compactMap { $0.result?["item"]?.integer }
                #expect(values.count == 10 && zip(values, values.dropFirst()).allSatisfy { $0 <= $1 }, "\(values)")
            }
            for _ in 0..<10 { #expect(try writer.receive().result != nil) }
        }
    }

    /// A read that finds more than there is room for is made again, and then so is what was read behind it.
    @Test func noReadOvertakesOneThatBeginsAgain() throws {
        let daemon = try Daemon(
            Configuration(
                backends: "main: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/main.sqlite}}",
                limits: "session_bytes: 512KiB"))
        let writer = try daemon.connect()
        let long = "\"" + String(repeating: "x", count: 400_000) + "\""
        _ = try writer.upsert("unread", "a", long)
        for round in 0..<5 {
            _ = try writer.upsert("again", "a", long)
            let reader = try daemon.connect()
            try reader.sendFrame(Connection.request("record.read", Connection.params("unread", "a"), id: "1"))
            let read = Connection.request("record.read", Connection.params("again", "a"), id: "2")
            let exists = Connection.request("record.exists", Connection.params("again", "a"), id: "3")
            try reader.send(Connection.frame(read) + Connection.frame(exists))
            // Reads of another session take the same way.
            #expect(try writer.exists("again", "a") == true)
            #expect(try writer.delete("again", "a").result != nil)
            let replies = try (0..<3).map { _ in try reader.receive() }
            let found = replies.first { $0.id.integer == 2 }?.result != nil
            let existed = replies.first { $0.id.integer == 3 }?.result?["exists"]?.boolean
            #expect(found || existed == false, "round \(round)")
        }
    }

    @Test func reindexingBehindAReadThatBeginsAgainIsReplied() throws {
        let daemon = try Daemon(Self.configuration(sessionBytes: "512KiB"))
        let writer = try daemon.connect()
        let reader = try readerWithoutRoom(daemon, writer)
        let read = Connection.request("record.read", Connection.params("again", "a"), id: "2")
        // Of so many some are done after the read has found out that it needs more room.
        let params = #"{"collection":"again"}"#
        let reindexes = (3..<53).map { Connection.request("collection.reindex", params, id: "\($0)") }
        try reader.send(([read] + reindexes).flatMap { Connection.frame($0) })
        // What another session has executed takes the same way.
        #expect(try writer.exists("again", "a") == true)
        #expect(try writer.call("collection.reindex", params).result?.text == "{}")
        let replies = try (1..<53).map { _ in try reader.receive() }
        #expect(Set(replies.map(\.id.integer)) == Set(1..<53))
        #expect(replies.allSatisfy { $0.result != nil })
        #expect(try reader.upsert("again", "a", "1").result != nil)
    }

    /// An element of an array that was about to begin again must not keep those behind it from being executed.
    @Test func whatAPeerHasSentBehindAReadIsExecutedThoughItLeaves() throws {
        let daemon = try Daemon(Self.configuration(sessionBytes: "2MiB"))
        let writer = try daemon.connect()
        let reader = try readerWithoutRoom(daemon, writer)
        let read = Connection.request("record.read", Connection.params("again", "a"), id: "2")
        let exists = Connection.request("record.exists", Connection.params("again", "a"), id: "3")
        let create = Connection.request("record.create", Connection.params("left", "a", item: "1"), id: "4")
        try reader.send(Connection.frame(read) + Connection.frame("[\(exists),\(create)]"))
        #expect(try writer.exists("again", "a") == true)
        #expect(try writer.exists("again", "a") == true)
        reader.close()
        let deadline = Deadline()
        while try writer.exists("left", "a") != true {
            try #require(!deadline.hasPassed, "the element behind the read is not executed")
        }
    }

    /// A read whose record has no room when it comes, while its peer has left, must not keep what was sent behind it
    /// from being executed.
    @Test func whatAPeerHasSentBehindALongReadIsExecutedThoughItLeaves() throws {
        var configuration = Self.configuration(sessionBytes: "2MiB")
        // An eighth of this is too little for the record.
        configuration.limits?.append("\nbuffer_bytes: 2MiB")
        configuration.loops = 1
        configuration.backends += "\nquick: {plugin: sqlite, options: {path: $DIRECTORY/quick.sqlite}}"
        configuration.collections += "\nfollowed: {backend: quick, changes: true}"
        let daemon = try Daemon(configuration)
        let writer = try daemon.connect()
        let long = "\"" + String(repeating: "x", count: 500_000) + "\""
        #expect(try writer.upsert("again", "a", long).result != nil)
        let backends = try writer.call("backend.list").result?["backends"]?.elements
        let child = try #require(backends?.first?["pid"]?.integer.map { pid_t($0) })
        let reader = try daemon.connect()
        #expect(Glibc.kill(child, SIGSTOP) == 0)
        let requests = [
            ("collection.changes", #"{"collection":"followed","after":"now","wait":15}"#),
            ("record.read", Connection.params("again", "a")),
            ("record.create", Connection.params("again", "b", item: "1")),
            ("record.exists", Connection.params("again", "b")),
            ("record.create", Connection.params("again", "c", item: "1")),
        ]
        try reader.send(
            requests.enumerated().flatMap {
                Connection.frame(Connection.request($1.0, $1.1, id: "\($0)"))
            })
        #expect(try writer.isUsable())
        reader.close()
        // The reply to this closes the connection on the daemon's side, too.
        #expect(try writer.create("followed", "a", "1").result != nil)
        #expect(try writer.isUsable())
        #expect(Glibc.kill(child, SIGCONT) == 0)
        let deadline = Deadline()
        while try writer.exists("again", "c") != true {
            try #require(!deadline.hasPassed, "what is behind the read is not executed")
        }
    }

    /// Little room, and reads that do not find their records on the event loop.
    private static func configuration(sessionBytes: String) -> Configuration {
        Configuration(
            backends: "main: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/main.sqlite}}",
            collections: #""*": {backend: main, indexes: [name]}"#,
            limits: "item_bytes: 512KiB\nsession_bytes: \(sessionBytes)", cache: "0B")
    }

    /// A session that does not read the reply to its request 1, so that there is no room for the long record in the
    /// collection `again`.
    private func readerWithoutRoom(_ daemon: Daemon, _ writer: Connection) throws -> Connection {
        let long = "\"" + String(repeating: "x", count: 500_000) + "\""
        for collection in ["unread", "again"] { _ = try writer.upsert(collection, "a", long) }
        let reader = try daemon.connect()
        try reader.sendFrame(Connection.request("record.read", Connection.params("unread", "a"), id: "1"))
        #expect(try writer.exists("unread", "a") == true)
        return reader
    }

    @Test(arguments: loops)
    func readersNeverSeeTheClockGoBack(loops: Int) throws {
        let writer = try Daemon.shared(loops: loops).connect()
        let readers = try (0..<3).map { _ in try Daemon.shared(loops: loops).connect() }
        _ = try writer.upsert("clock", "a", "0")
        var seen = 0
        for round in 0..<40 {
            for number in 0..<10 {
                let params = Connection.params("clock", "a", item: "\(round * 10 + number)")
                try writer.sendFrame(Connection.request("record.upsert", params, id: "1"))
                for reader in readers {
                    let read = Connection.params("clock", "a")
                    try reader.sendFrame(Connection.request("record.read", read, id: "\(number)"))
                }
            }
            // Each reader's own ten follow each other; none may fall behind what anybody saw in the round before.
            let floor = seen
            for reader in readers {
                let replies = try (0..<10).map { _ in try reader.receive() }
                    .sorted { ($0.id.integer ?? 0) < ($1.id.integer ?? 0) }
                let values = [floor] + replies.compactMap { $0.result?["item"]?.integer }
                #expect(values.count == 11)
                #expect(zip(values, values.dropFirst()).allSatisfy { $0 <= $1 })
                seen = max(seen, values.max() ?? 0)
            }
            for _ in 0..<10 { #expect(try writer.receive().result != nil) }
            seen = max(seen, round * 10 + 9)
        }
    }

    @Test(arguments: loops)
    func collectionsMayOvertakeButEachKeepsItsOrder(loops: Int) throws {
        let connection = try Daemon.shared(loops: loops).connect()
        let replies = try connection.pipeline(
            (0..<600).flatMap { number in
                let collection = "lane \(number % 3)"
                return [
                    ("record.upsert", Connection.params(collection, "a", item: "\(number)")),
                    ("record.read", Connection.params(collection, "a")),
                ]
            })
        for number in 0..<600 { #expect(replies[2 * number + 1].result?["item"]?.integer == number) }
    }
}
