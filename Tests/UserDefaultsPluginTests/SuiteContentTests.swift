import CRUDTestSupport
import Foundation
import Testing

/// What other programs see in the suite, and what they put there.
@Suite struct SuiteContentTests {
    private let suite: SuiteDaemon
    private let connection: Connection

    init() throws {
        suite = try SuiteDaemon()
        connection = try suite.start()
    }

    @Test func namesKeysAsDocumented() throws {
        let revision = try connection.create("Clients Database", "j.doe@example/7-é_", #"{"a":1}"#).result?["revision"]
        let list = try suite.list()
        let key = "database_Clients%20Database_item_j.doe%40example%2F7-%C3%A9%5F"
        #expect(list[key] as? String == #"{"a":1}"#)
        let revisions = list.filter { $0.key.contains("_revision_") }
        #expect(revisions.keys.sorted() == [key.replacingOccurrences(of: "_item_", with: "_revision_")])
        let stored = try #require(revisions.values.first as? String)
        #expect(stored.contains(" \(try #require(revision?.string)) "))
        #expect(list["database_Clients%20Database_formats"] as? String == "json")
        #expect(list["database__sequence"] is String)
        #expect(list.count == 4)
    }

    /// What XML would change is data.
    @Test(arguments: [
        (#""plain é 😀 <&>]]>""#, true), (#""\u0000\r""#, true), ("\"\u{FEFF}\"", false), ("\"a\u{FFFE}\"", false),
        ("\"\u{7F}\"", false), ("[1,\r\n2]", false), ("[1,\n\t2]", true),
    ])
    func keepsTextsReadable(item: String, isText: Bool) throws {
        #expect(try connection.create("c", "id", item).result != nil)
        let value = try #require(try suite.list()["database_c_item_id"])
        #expect((value as? String).map { $0.utf8.elementsEqual(item.utf8) } ?? false == isText)
        #expect((value as? Data).map { $0.elementsEqual(item.utf8) } ?? false == !isText)
        try suite.stop()
        #expect(try suite.start().item("c", "id")?.utf8.elementsEqual(item.utf8) == true)
    }

    @Test func leavesForeignKeysAlone() throws {
        let foreign: [String: Any] = [
            "AppleLanguages": ["de", "en"], "count": 7, "database": "x", "database_c": 1, "database_c_item": "x",
            "database_c_item_%61": "1", "database_c_item_%2e": "1", "database_c_item_": "1", "database_c_item_a_b": "1",
            "database_c_item.yaml_a": "1", "database__item_a": "1", "database_c_other_a": "1", "Database_c_item_a": "1",
            "database_c_item_%FF": "1", "database_c_item_%00": "1", "database_c_item_%4": "1",
            "database__sequences": "1",
        ]
        try suite.stop()
        try suite.edit { $0.merge(foreign) { $1 } }
        let connection = try suite.start()
        #expect(try connection.create("c", "b", "1").result != nil)
        #expect(try connection.delete("c", "b").result != nil)
        #expect(try connection.create("c", "a", "2").result != nil)
        let list = try suite.list()
        for (key, value) in foreign { #expect(list[key].map { "\($0)" } == "\(value)", "\(key)") }
        #expect(list.count == foreign.count + 4)
    }

    // MARK: Written by hand

    @Test func readsWhatIsWrittenByHand() throws {
        try suite.edit {
            $0["database_hand%20made_item_one"] = #"{"by": "hand"}"#
            $0["database_hand%20made_item_two"] = Data("[2]".utf8)
            $0["database_hand%20made_item_three"] = 3
        }
        let one = try connection.read("hand made", "one").result
        #expect(one?["item"]?.text == #"{"by": "hand"}"#)
        let revision = try #require(one?["revision"]?.string)
        #expect(try connection.item("hand made", "two") == "[2]")
        #expect(try connection.read("hand made", "three").error?.name == "corrupt")
        let page = try connection.call("record.query", #"{"collection":"hand made","filter":true}"#).result
        #expect(page?["records"]?.elements?.count == 2)
        #expect(page?["corrupt"]?.text == #"["three"]"#)
        let mismatch = try connection.update("hand made", "one", "1", ifRevision: "other")
        #expect(mismatch.error?.name == "revision_mismatch")
        #expect(try connection.update("hand made", "one", "1", ifRevision: revision).result != nil)
    }

    @Test func noticesEditsWhileItRuns() throws {
        let created = try connection.create("c", "a", #"{"n":1}"#).result?["revision"]?.string
        #expect(try connection.create("c", "b", "1").result != nil)
        try suite.edit {
            $0["database_c_item_a"] = #"{"n":2}"#
            $0["database_c_item_b"] = nil
            $0["mine"] = true
        }
        let read = try connection.read("c", "a").result
        #expect(read?["item"]?.text == #"{"n":2}"#)
        #expect(read?["revision"]?.string != created)
        #expect(try connection.update("c", "a", "3", ifRevision: created).error?.name == "revision_mismatch")
        #expect(try connection.item("c", "b") == nil)
        // What Foundation has cached of the key is not what the file holds.
        #expect(try connection.upsert("c", "a", #"{"n":1}"#).result != nil)
        #expect(try suite.list()["database_c_item_a"] as? String == #"{"n":1}"#)
        #expect(try suite.list()["mine"] as? Bool == true)
    }

    @Test func recoversOnceABrokenListIsRepaired() throws {
        #expect(try connection.create("c", "a", "1").result != nil)
        let whole = try Files.read(suite.path)
        try Files.write("{ what = is; }", to: suite.path)
        #expect(try connection.read("c", "a").error?.name == "unavailable")
        #expect(try connection.create("c", "b", "1").error?.name == "unavailable")
        #expect(try Files.read(suite.path) == Array("{ what = is; }".utf8))
        try Files.write(whole, to: suite.path)
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.create("c", "b", "1").result != nil)
    }

    @Test func startsOverWhenTheFileIsRemoved() throws {
        #expect(try connection.create("c", "a", "1").result != nil)
        Files.remove(suite.path)
        #expect(try connection.item("c", "a") == nil)
        #expect(try connection.create("c", "a", "2").result != nil)
        #expect(try suite.list()["database_c_item_a"] as? String == "2")
    }
}
