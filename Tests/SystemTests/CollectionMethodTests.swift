import CRUDTestSupport
import Testing

/// `collection.list` and `collection.describe`.
@Suite struct CollectionMethodTests {
    private static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
            """,
        collections: """
            clients: {backend: main, format: json, indexes: [name, address.city]}
            "Clients Database": {backend: other}
            "team-*": {backend: other}
            "team-a*": {backend: main}
            "t??": {backend: main}
            """)

    @Test func listShowsTheNamedCollections() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let collections = try self.collections(connection)
        #expect(Set(collections.keys) == ["clients", "Clients Database"])
        let clients = try #require(collections["clients"])
        #expect(clients.members?.map(\.name).sorted() == ["backend", "format", "indexes", "name"])
        #expect(clients["backend"]?.string == "main")
        #expect(clients["format"]?.string == "json")
        #expect(clients["indexes"]?.elements?.compactMap(\.string) == ["name", "address.city"])
        #expect(collections["Clients Database"]?["backend"]?.string == "other")
        #expect(collections["Clients Database"]?["format"]?.string == "json")
        #expect(collections["Clients Database"]?["indexes"]?.elements?.isEmpty == true)
    }

    @Test func listShowsWhatAGlobHasBroughtIntoBeing() throws {
        var daemon = try Daemon(Self.configuration)
        var connection = try daemon.connect()
        #expect(try connection.create("team-x", "a", "1").result != nil)
        #expect(try connection.create("team-ab", "a", "1").result != nil)
        #expect(try connection.create("tüx", "a", "1").result != nil)
        for restart in [false, true] {
            if restart {
                try daemon.stop()
                daemon = try daemon.restarted()
                connection = try daemon.connect()
            }
            let collections = try self.collections(connection)
            #expect(Set(collections.keys) == ["clients", "Clients Database", "team-x", "team-ab", "tüx"])
            #expect(collections["team-x"]?["backend"]?.string == "other")
            // The glob with the most literal code points decides.
            #expect(collections["team-ab"]?["backend"]?.string == "main")
            #expect(collections["tüx"]?["backend"]?.string == "main")
        }
    }

    @Test func aBackslashMakesAGlobLiteral() throws {
        let daemon = try Daemon(Configuration(collections: #"'a\*': {backend: main}"#))
        let connection = try daemon.connect()
        #expect(try connection.create("a*", "x", "1").result != nil)
        #expect(try connection.create("ab", "x", "1").error?.name == "collection_not_found")
        #expect(try connection.create(#"a\*"#, "x", "1").error?.name == "collection_not_found")
    }

    @Test func readingBringsNothingIntoBeing() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        _ = try connection.read("unborn", "a")
        _ = try connection.exists("unborn", "a")
        _ = try connection.readMany("unborn", ["a"])
        _ = try connection.call("collection.describe", #"{"collection":"unborn"}"#)
        _ = try connection.update("unborn", "a", "1")
        _ = try connection.delete("unborn", "a")
        #expect(try collections(connection).isEmpty)
    }

    @Test func describeCounts() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        for id in 0..<7 { #expect(try connection.create("clients", "\(id)", "{}").result != nil) }
        #expect(try connection.delete("clients", "3").result != nil)
        let result = try #require(
            try connection.call("collection.describe", #"{"collection":"clients"}"#).result)
        let names = result.members?.map(\.name).sorted()
        #expect(names == ["backend", "capabilities", "changes", "count", "format", "indexes", "name"])
        #expect(result["name"]?.string == "clients")
        #expect(result["backend"]?.string == "main")
        #expect(result["format"]?.string == "json")
        #expect(result["indexes"]?.elements?.compactMap(\.string) == ["name", "address.city"])
        #expect(result["count"]?.integer == 6)
        let empty = try connection.call("collection.describe", #"{"collection":"team-none"}"#).result
        #expect(empty?["count"]?.integer == 0)
    }

    @Test func aRefusedCollectionFailsItsOwnWritesAlone() throws {
        let daemon = try Daemon(Configuration(limits: "collections: 1"))
        let connection = try daemon.connect()
        #expect(try connection.create("first", "a", "1").result != nil)
        let requests = ["first", "second", "first"].enumerated().map { number, collection in
            Connection.request(
                "record.create", Connection.params(collection, "b\(number)", item: "1"), id: String(number))
        }
        try connection.sendFrame("[\(requests.joined(separator: ","))]")
        let replies = try connection.receiveBatch()
        #expect(replies.map { $0.error?.name } == [nil, "limit_exceeded", nil])
    }

    @Test func globsBringSoManyIntoBeingAndNoMore() throws {
        let daemon = try Daemon(Configuration(limits: "collections: 3"))
        let connection = try daemon.connect()
        for name in ["a", "b", "c"] { #expect(try connection.create(name, "x", "1").result != nil) }
        let error = try connection.create("d", "x", "1").error
        #expect(error?.name == "limit_exceeded")
        #expect(error?.details?["limit"]?.string == "collections")
        #expect(error?.details?["maximum"]?.integer == 3)
        #expect(try connection.create("a", "y", "1").result != nil)
        #expect(try collections(connection).keys.sorted() == ["a", "b", "c"])
    }

    private func collections(_ connection: Connection) throws -> [String: JSON] {
        let result = try #require(try connection.call("collection.list").result)
        #expect(result.members?.map(\.name) == ["collections"])
        let elements = try #require(result["collections"]?.elements)
        return Dictionary(uniqueKeysWithValues: try elements.map { (try #require($0["name"]?.string), $0) })
    }
}
