import CRUDTestSupport
import Testing

/// Revisions and conditional writes.
@Suite(.daemon) struct RevisionTests {
    @Test func aMatchingRevisionLetsTheWriteThrough() throws {
        let connection = try Daemon.shared.connect()
        let first = try revision(connection.create("matching", "a", "1"))
        let second = try revision(connection.update("matching", "a", "2", ifRevision: first))
        let third = try revision(connection.upsert("matching", "a", "3", ifRevision: second))
        #expect(try connection.item("matching", "a") == "3")
        #expect(try connection.delete("matching", "a", ifRevision: third).result?.text == "{}")
        #expect(try connection.item("matching", "a") == nil)
    }

    @Test func anotherRevisionIsAMismatchThatTellsTheCurrentOne() throws {
        let connection = try Daemon.shared.connect()
        let stale = try revision(connection.create("stale", "a", "1"))
        let current = try revision(connection.update("stale", "a", "2"))
        let replies = try [
            connection.update("stale", "a", "3", ifRevision: stale),
            connection.upsert("stale", "a", "3", ifRevision: stale),
            connection.delete("stale", "a", ifRevision: stale),
            connection.update("stale", "a", "3", ifRevision: "no such revision"),
        ]
        for reply in replies {
            #expect(reply.error?.code == -32003)
            #expect(reply.error?.name == "revision_mismatch")
            #expect(reply.error?.details?["revision"]?.string == current)
        }
        let record = try connection.read("stale", "a").result
        #expect(record?["item"]?.text == "2")
        #expect(record?["revision"]?.string == current)
    }

    @Test func withoutARecordTheMethodsDiffer() throws {
        let connection = try Daemon.shared.connect()
        let gone = try revision(connection.create("gone", "a", "1"))
        #expect(try connection.delete("gone", "a").result != nil)
        for revision in [gone, "x"] {
            #expect(try connection.update("gone", "a", "2", ifRevision: revision).error?.name == "record_not_found")
            #expect(try connection.delete("gone", "a", ifRevision: revision).error?.name == "record_not_found")
            let error = try connection.upsert("gone", "a", "2", ifRevision: revision).error
            #expect(error?.name == "revision_mismatch")
            #expect(error?.details?["revision"] == nil)
        }
        #expect(try connection.item("gone", "a") == nil)
    }

    @Test func anEqualItemGetsANewRevision() throws {
        let connection = try Daemon.shared.connect()
        let first = try revision(connection.create("equal", "a", "1"))
        let second = try revision(connection.update("equal", "a", "1"))
        let third = try revision(connection.upsert("equal", "a", "1"))
        #expect(Set([first, second, third]).count == 3)
    }

    @Test func deletionDoesNotBringOldRevisionsBack() throws {
        let connection = try Daemon.shared.connect()
        var seen: Set<String> = []
        for _ in 0..<200 {
            #expect(seen.insert(try revision(connection.create("again", "a", "1"))).inserted)
            #expect(seen.insert(try revision(connection.upsert("again", "a", "1"))).inserted)
            #expect(try connection.delete("again", "a").result != nil)
        }
        #expect(try connection.create("again", "a", "1").result != nil)
        for old in seen {
            #expect(try connection.update("again", "a", "2", ifRevision: old).error?.name == "revision_mismatch")
        }
    }

    @Test func restartsDoNotBringOldRevisionsBack() throws {
        var daemon = try Daemon()
        var seen: Set<String> = []
        var last = ""
        for round in 0..<6 {
            let connection = try daemon.connect()
            if round > 0 {
                #expect(try connection.read("c", "a").result?["revision"]?.string == last)
                #expect(try connection.delete("c", "a").result != nil)
            }
            let writes = try connection.pipeline(
                [("record.create", #"{"collection":"c","id":"a","item":1}"#)]
                    + (0..<50).map { _ in ("record.upsert", #"{"collection":"c","id":"a","item":1}"#) })
            for write in writes { #expect(seen.insert(try revision(write)).inserted) }
            last = try revision(writes[50])
            if round.isMultiple(of: 2) { try daemon.stop() } else { try daemon.kill() }
            daemon = try daemon.restarted()
        }
    }

    @Test func pipelinedWritesEachHaveTheirOwn() throws {
        let connection = try Daemon.shared.connect()
        let replies = try connection.pipeline(
            (0..<1000).map { ("record.upsert", #"{"collection":"pipelined","id":"\#($0 % 10)","item":\#($0)}"#) })
        #expect(try Set(replies.map(revision)).count == 1000)
    }

    @Test func oneOfManyConditionalWritersWins() throws {
        let connections = try (0..<4).map { _ in try Daemon.shared.connect() }
        _ = try connections[0].create("counter", "n", "0")
        for _ in 0..<50 {
            let record = try #require(try connections[0].read("counter", "n").result)
            let count = try #require(record["item"]?.integer)
            let params = Connection.params(
                "counter", "n", item: String(count + 1), ifRevision: try #require(record["revision"]?.string))
            for connection in connections {
                try connection.sendFrame(Connection.request("record.update", params, id: "1"))
            }
            let replies = try connections.map { try $0.receive() }
            #expect(replies.count { $0.result != nil } == 1)
            #expect(replies.count { $0.error?.name == "revision_mismatch" } == 3)
        }
        #expect(try connections[0].item("counter", "n") == "50")
    }

    private func revision(_ reply: Reply) throws -> String {
        try #require(reply.result?["revision"]?.string, "\(reply)")
    }
}
