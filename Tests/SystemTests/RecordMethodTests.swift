import CRUDTestSupport
import Testing

/// What each record method replies.
@Suite(.daemon) struct RecordMethodTests {
    @Test func createRepliesWithARevision() throws {
        let connection = try Daemon.shared.connect()
        let result = try #require(try connection.create("creating", "a", #"{"n":1}"#).result)
        #expect(result.members?.map(\.name) == ["revision"])
        let revision = try #require(result["revision"]?.string)
        #expect(1...64 ~= revision.utf8.count)
    }

    @Test func createRefusesAnIDThatIsThere() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("creating twice", "a", "1").result != nil)
        let error = try connection.create("creating twice", "a", "2").error
        #expect(error?.code == -32002)
        #expect(error?.name == "record_exists")
        #expect(try connection.item("creating twice", "a") == "1")
    }

    @Test func readRepliesWithIDItemAndRevision() throws {
        let connection = try Daemon.shared.connect()
        let revision = try connection.create("reading", "a", #"{"n":1}"#).result?["revision"]?.string
        let record = try #require(try connection.read("reading", "a").result)
        #expect(record.members?.map(\.name).sorted() == ["id", "item", "revision"])
        #expect(record["id"]?.string == "a")
        #expect(record["item"]?.text == #"{"n":1}"#)
        #expect(record["revision"]?.string == revision)
    }

    @Test func whatIsNotThereIsNotFound() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("missing", "there", "1").result != nil)
        for collection in ["missing", "never written to"] {
            #expect(try connection.read(collection, "a").error?.code == -32001)
            #expect(try connection.update(collection, "a", "1").error?.name == "record_not_found")
            #expect(try connection.delete(collection, "a").error?.name == "record_not_found")
            #expect(try connection.exists(collection, "a") == false)
        }
        #expect(try connection.exists("missing", "a") == false)
    }

    @Test func updateReplacesTheItem() throws {
        let connection = try Daemon.shared.connect()
        let first = try connection.create("updating", "a", #"{"n":1,"m":2}"#).result?["revision"]?.string
        let result = try #require(try connection.update("updating", "a", #"{"n":3}"#).result)
        #expect(result.members?.map(\.name) == ["revision"])
        #expect(result["revision"]?.string != first)
        let record = try connection.read("updating", "a").result
        #expect(record?["item"]?.text == #"{"n":3}"#)
        #expect(record?["revision"]?.string == result["revision"]?.string)
    }

    @Test func deleteRemovesTheRecord() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("deleting", "a", "1").result != nil)
        #expect(try connection.create("deleting", "b", "2").result != nil)
        #expect(try connection.delete("deleting", "a").result?.text == "{}")
        #expect(try connection.item("deleting", "a") == nil)
        #expect(try connection.exists("deleting", "a") == false)
        #expect(try connection.delete("deleting", "a").error?.name == "record_not_found")
        #expect(try connection.item("deleting", "b") == "2")
    }

    @Test func upsertCreatesAndThenReplaces() throws {
        let connection = try Daemon.shared.connect()
        let first = try #require(try connection.upsert("upserting", "a", "1").result)
        #expect(first.members?.map(\.name).sorted() == ["created", "revision"])
        #expect(first["created"]?.boolean == true)
        let second = try #require(try connection.upsert("upserting", "a", "2").result)
        #expect(second["created"]?.boolean == false)
        #expect(second["revision"]?.string != first["revision"]?.string)
        #expect(try connection.item("upserting", "a") == "2")
    }

    @Test func existsRepliesWithABoolean() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("existing", "a", "null").result != nil)
        let params = #"{"collection":"existing","id":"a"}"#
        #expect(try connection.call("record.exists", params).result?.text == #"{"exists":true}"#)
    }

    @Test func readManyKeepsTheOrderOfTheIDs() throws {
        let connection = try Daemon.shared.connect()
        for id in ["a", "b", "c"] { #expect(try connection.create("many", id, "\"\(id)\"").result != nil) }
        let reply = try connection.readMany("many", ["c", "x", "a", "c", "y", "b", "a"])
        let result = try #require(reply.result)
        #expect(result.members?.map(\.name).sorted() == ["missing", "records"])
        let records = try #require(result["records"]?.elements)
        #expect(records.compactMap { $0["id"]?.string } == ["c", "a", "b"])
        #expect(records.compactMap { $0["item"]?.string } == ["c", "a", "b"])
        for record in records {
            #expect(record.members?.map(\.name).sorted() == ["id", "item", "revision"])
            let alone = try connection.read("many", record["id"]?.string ?? "").result
            #expect(alone?["revision"]?.string == record["revision"]?.string)
        }
        #expect(result["missing"]?.elements?.compactMap(\.string).sorted() == ["x", "y"])
    }

    @Test func readManyOfNothing() throws {
        let connection = try Daemon.shared.connect()
        let none = try connection.readMany("many of nothing", []).result
        #expect(none?["records"]?.elements?.isEmpty == true)
        #expect(none?["missing"]?.elements?.isEmpty == true)
        let missing = try connection.readMany("many of nothing", ["a"]).result
        #expect(missing?["records"]?.elements?.isEmpty == true)
        #expect(missing?["missing"]?.elements?.compactMap(\.string) == ["a"])
    }

    @Test func readManyTakesAThousandIDsAndNoMore() throws {
        let connection = try Daemon.shared.connect()
        let ids = (0..<1000).map { "id \($0)" }
        for id in ids.prefix(10) { #expect(try connection.create("many ids", id, "1").result != nil) }
        let result = try connection.readMany("many ids", ids).result
        #expect(result?["records"]?.elements?.count == 10)
        #expect(result?["missing"]?.elements?.count == 990)
        let error = try connection.readMany("many ids", ids + ["one more"]).error
        #expect(error?.name == "limit_exceeded")
        #expect(error?.details?["limit"]?.string == "batch")
        #expect(error?.details?["maximum"]?.integer == 1000)
    }

    @Test func collectionsAreStrangers() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("one", "a", "1").result != nil)
        #expect(try connection.create("other", "a", "2").result != nil)
        #expect(try connection.delete("one", "a").result != nil)
        #expect(try connection.item("other", "a") == "2")
    }
}

/// Collections that no rule maps.
@Suite(.daemon(Configuration(collections: "named: {backend: main}\n\"team-*\": {backend: main}")))
struct UnmappedCollectionTests {
    @Test func areNotFoundByAnyMethod() throws {
        let connection = try Daemon.shared.connect()
        let errors = [
            try connection.create("other", "a", "1"), try connection.read("other", "a"),
            try connection.update("other", "a", "1"), try connection.upsert("other", "a", "1"),
            try connection.delete("other", "a"), try connection.readMany("other", ["a"]),
            try connection.call("record.exists", #"{"collection":"other","id":"a"}"#),
            try connection.call("collection.describe", #"{"collection":"other"}"#),
        ].map(\.error)
        for error in errors {
            #expect(error?.code == -32004)
            #expect(error?.name == "collection_not_found")
        }
    }

    @Test func mappedOnesAreServed() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("named", "a", "1").result != nil)
        #expect(try connection.create("team-a", "a", "1").result != nil)
        #expect(try connection.create("Named", "a", "1").error?.name == "collection_not_found")
    }
}
