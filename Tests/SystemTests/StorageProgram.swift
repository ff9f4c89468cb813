import CRUDTestSupport
import Testing

/// What an application does with a collection, one method after the other, and what it must see.
struct StorageProgram {
    let connection: Connection
    let collection: String

    /// Items that every format holds and brings back as they were.
    static let items = [
        "0", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.5", "-273.15", "true",
        "false", #""""#, #"" a ""#, #""é e\u0301 😀 \ud83d\ude00""#, #""\t\n]]>&<>\"\\/""#, "[]", "{}", "[[],{},[{}]]",
        #"{"":{"":[""]}}"#, #"{"b":1,"a":{"d":[1,2.5,"3"],"c":true}}"#, #"{"é":1,"e\u0301":2}"#,
        #"[1,1,1,"1","1",1.5,true,{"a":"a"},{"a":"a"}]"#,
        String(repeating: "[", count: 100) + "1" + String(repeating: "]", count: 100),
    ]

    func run() throws {
        let first = try creates()
        let second = try updates(first)
        try upserts(second)
        try readsMany()
        try deletes()
        try refuses()
    }

    private func creates() throws -> String {
        #expect(try connection.read(collection, "ada").error?.name == "record_not_found")
        #expect(try connection.exists(collection, "ada") == false)
        #expect(try connection.update(collection, "ada", "1").error?.name == "record_not_found")
        #expect(try connection.delete(collection, "ada").error?.name == "record_not_found")
        let created = try connection.create(collection, "ada", #"{"name":"Ada","age":36,"address":{"city":"London"}}"#)
        let revision = try #require(created.result?["revision"]?.string)
        let record = try #require(try connection.read(collection, "ada").result)
        #expect(record["id"]?.string == "ada")
        #expect(record["item"]?.text == #"{"name":"Ada","age":36,"address":{"city":"London"}}"#)
        #expect(record["revision"]?.string == revision)
        #expect(try connection.exists(collection, "ada") == true)
        #expect(try connection.create(collection, "ada", "2").error?.name == "record_exists")
        let fields = try connection.read(collection, "ada", fields: #"["address.city","none"]"#).result
        #expect(fields?["item"]?.text == #"{"address":{"city":"London"}}"#)
        return revision
    }

    private func updates(_ first: String) throws -> String {
        let updated = try connection.update(collection, "ada", #"{"name":"Ada","age":37}"#, ifRevision: first)
        let second = try #require(updated.result?["revision"]?.string)
        #expect(second != first)
        let error = try connection.update(collection, "ada", "3", ifRevision: first).error
        #expect(error?.name == "revision_mismatch")
        #expect(error?.details?["revision"]?.string == second)
        #expect(try connection.delete(collection, "ada", ifRevision: first).error?.name == "revision_mismatch")
        #expect(try connection.item(collection, "ada") == #"{"name":"Ada","age":37}"#)
        let same = try connection.update(collection, "ada", #"{"name":"Ada","age":37}"#).result?["revision"]?.string
        #expect(same != second)
        return try #require(same)
    }

    private func upserts(_ revision: String) throws {
        let stale = try connection.upsert(collection, "new", "1", ifRevision: revision)
        #expect(stale.error?.name == "revision_mismatch")
        #expect(stale.error?.details?["revision"] == nil)
        #expect(try connection.upsert(collection, "new", "1").result?["created"]?.boolean == true)
        #expect(try connection.upsert(collection, "new", "[2]").result?["created"]?.boolean == false)
        #expect(try connection.item(collection, "new") == "[2]")
        let replaced = try connection.upsert(collection, "ada", "true", ifRevision: revision)
        #expect(replaced.result?["created"]?.boolean == false)
    }

    private func readsMany() throws {
        let result = try #require(try connection.readMany(collection, ["new", "none", "ada", "new"]).result)
        #expect(result["records"]?.elements?.map { $0["id"]?.string } == ["new", "ada"])
        #expect(result["records"]?.elements?.map { $0["item"]?.text } == ["[2]", "true"])
        #expect(result["missing"]?.text == #"["none"]"#)
        let listed = try connection.call("collection.list").result?["collections"]?.elements
        #expect(listed?.contains { $0["name"]?.string == collection } == true)
    }

    private func deletes() throws {
        #expect(try connection.delete(collection, "new").result?.text == "{}")
        #expect(try connection.exists(collection, "new") == false)
        #expect(try connection.delete(collection, "new").error?.name == "record_not_found")
        #expect(try connection.create(collection, "new", "3").result != nil)
        let described = try connection.call("collection.describe", #"{"collection":\#(JSON.quote(collection))}"#).result
        #expect(described?["count"]?.integer == 2)
    }

    /// A write that is refused changes nothing, and none of what came with it.
    private func refuses() throws {
        let replies = try connection.pipeline([
            ("record.update", Connection.params(collection, "new", item: "4")),
            ("record.create", Connection.params(collection, "new", item: "5")),
            ("record.upsert", Connection.params(collection, "new", item: "6", ifRevision: "none")),
            ("record.read", Connection.params(collection, "new")),
            ("record.delete", Connection.params(collection, "new")),
            ("record.exists", Connection.params(collection, "new")),
        ])
        #expect(replies.map { $0.error?.name } == [nil, "record_exists", "revision_mismatch", nil, nil, nil])
        #expect(replies[3].result?["item"]?.text == "4")
        #expect(replies[5].result?["exists"]?.boolean == false)
    }
}
