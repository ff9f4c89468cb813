import CRUDTestSupport
import Glibc
import Testing

/// What clients and administrators see of the record cache.
@Suite struct CacheTests {
    private static func configuration(main: String = "", bytes: String = "64MiB") -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, \(main) options: {path: $DIRECTORY/main.sqlite}}
                child: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
                files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
                """,
            collections: """
                plist: {backend: main, format: plist}
                files: {backend: files}
                child: {backend: child}
                "*": {backend: main}
                """, cache: bytes)
    }

    private struct Counts: Equatable {
        var hits: Int
        var misses: Int
        var records: Int
    }

    private func counts(_ connection: Connection) throws -> Counts {
        let cache = try #require(try connection.call("daemon.status").result?["cache"])
        return try Counts(
            hits: #require(cache["hits"]?.integer), misses: #require(cache["misses"]?.integer),
            records: #require(cache["records"]?.integer))
    }

    @Test(arguments: ["json", "plist", "child"])
    func secondReadIsAHit(collection: String) throws {
        let connection = try Daemon(Self.configuration()).connect()
        let item = #"{"a":{"b":1},"c":"é"}"#
        #expect(try connection.create(collection, "1", item).result != nil)
        let first = try connection.read(collection, "1")
        #expect(try counts(connection) == Counts(hits: 0, misses: 1, records: 1))
        #expect(try connection.read(collection, "1").result?.text == first.result?.text)
        #expect(try connection.read(collection, "1", fields: #"["a.b"]"#).result?["item"]?.text == #"{"a":{"b":1}}"#)
        #expect(try connection.read(collection, "1", fields: "[]").result?["item"] == nil)
        #expect(try connection.exists(collection, "1") == true)
        #expect(try counts(connection) == Counts(hits: 4, misses: 1, records: 1))
    }

    @Test func missingRecordIsCachedUntilItIsCreated() throws {
        let connection = try Daemon(Self.configuration()).connect()
        #expect(try connection.create("c", "other", "{}").result != nil)
        for _ in 0..<2 { #expect(try connection.read("c", "1").error?.name == "record_not_found") }
        #expect(try connection.exists("c", "1") == false)
        #expect(try counts(connection) == Counts(hits: 2, misses: 1, records: 1))
        #expect(try connection.create("c", "1", #"{"n":1}"#).result != nil)
        #expect(try connection.item("c", "1") == #"{"n":1}"#)
        #expect(try connection.delete("c", "1").result != nil)
        #expect(try connection.item("c", "1") == nil)
    }

    @Test func readManyUsesAndFillsTheCache() throws {
        let connection = try Daemon(Self.configuration()).connect()
        for id in ["1", "2", "3"] { #expect(try connection.create("c", id, #"{"id":\#(id)}"#).result != nil) }
        let ids = ["2", "none", "1"]
        #expect(try connection.item("c", "1") == #"{"id":1}"#)
        let first = try connection.readMany("c", ids)
        #expect(first.result?["missing"]?.text == #"["none"]"#)
        #expect(first.result?["records"]?.elements?.compactMap { $0["id"]?.string } == ["2", "1"])
        #expect(try counts(connection) == Counts(hits: 1, misses: 3, records: 3))
        #expect(try connection.readMany("c", ids).result?.text == first.result?.text)
        #expect(try counts(connection) == Counts(hits: 4, misses: 3, records: 3))
    }

    /// `bytes` is of everything, stays below what is allowed, and falls when a collection ends; each record beyond what
    /// fits is an eviction.
    @Test func bytesAndEvictionsAreCounted() throws {
        let (bytes, number) = (1 << 20, 2000)
        let connection = try Daemon(Self.configuration(bytes: "\(bytes)B")).connect()
        let item = #""\#(String(repeating: "x", count: 1000))""#
        func use() throws -> (records: Int, bytes: Int, evictions: Int) {
            let cache = try #require(try connection.call("daemon.status").result?["cache"])
            #expect(cache["maximumBytes"]?.integer == bytes)
            return try (
                #require(cache["records"]?.integer), #require(cache["bytes"]?.integer),
                #require(cache["evictions"]?.integer)
            )
        }
        let ids = (0..<number).map(String.init)
        let operations = ids.map { #"{"op":"create","collection":"c","id":"\#($0)","item":\#(item)}"# }
        for half in [operations.prefix(number / 2), operations.suffix(number / 2)] {
            let params = #"{"operations":[\#(half.joined(separator: ","))]}"#
            #expect(try connection.call("record.batch", params).error == nil)
        }
        #expect(try use().bytes == 0)
        #expect(try connection.item("c", ids[0]) == item)
        let first = try use()
        #expect(first.records == 1 && first.evictions == 0 && first.bytes > item.utf8.count)
        for half in [ids.prefix(number / 2), ids.suffix(number / 2)] {
            #expect(try connection.readMany("c", Array(half)).error == nil)
        }
        let full = try use()
        #expect(full.evictions > 0 && full.records + full.evictions == number)
        #expect(full.records * item.utf8.count < full.bytes && full.bytes <= bytes)
        #expect(try connection.call("collection.drop", #"{"collection":"c"}"#).error == nil)
        let dropped = try use()
        #expect(dropped.records == 0 && dropped.evictions == full.evictions && dropped.bytes < full.bytes / 2)
    }

    /// A backend that cannot tell when somebody else has written is not cached, nor one that must not be.
    @Test func backendsThatCannotTellAreNotCached() throws {
        let daemon = try Daemon(Self.configuration(main: "cache: false,"))
        let connection = try daemon.connect()
        for collection in ["files", "c"] {
            #expect(try connection.create(collection, "1", "{}").result != nil)
            for _ in 0..<2 { #expect(try connection.item(collection, "1") == "{}") }
        }
        #expect(try counts(connection) == Counts(hits: 0, misses: 0, records: 0))
        try daemon.installation.configure(Self.configuration())
        #expect(try connection.reload() == ["backend main: cache is now true"])
        for _ in 0..<2 { #expect(try connection.item("c", "1") == "{}") }
        #expect(try counts(connection) == Counts(hits: 1, misses: 1, records: 1))
        try daemon.installation.configure(Self.configuration(main: "cache: false,"))
        #expect(try connection.reload() == ["backend main: cache is now false"])
        #expect(try counts(connection).records == 0)
    }

    @Test func reloadChangesItsSize() throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        #expect(try connection.create("c", "1", "{}").result != nil)
        for _ in 0..<2 { #expect(try connection.item("c", "1") == "{}") }
        try daemon.installation.configure(Self.configuration(bytes: "0B"))
        #expect(try connection.reload() == ["cache.bytes: from 64MiB to 0B"])
        for _ in 0..<2 { #expect(try connection.item("c", "1") == "{}") }
        #expect(try counts(connection) == Counts(hits: 1, misses: 1, records: 0))
    }

    @Test(arguments: ["main", "child"])
    func dropAndForeignWriteEmptyIt(backend: String) throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        let collection = backend == "main" ? "c" : backend
        #expect(try connection.create(collection, "hot", #"{"number":0}"#).result != nil)
        let file = "\(daemon.installation.path)/\(backend).sqlite"
        let writer = try ForeignWriter(of: file, table: collection, id: "hot")
        for number in 1..<20 {
            #expect(try writer.write(number))
            for _ in 0..<2 { #expect(try connection.item(collection, "hot") == #"{"number":\#(number)}"#) }
        }
        #expect(try counts(connection).hits == 19)
        #expect(try connection.call("collection.drop", #"{"collection":"\#(collection)"}"#).result != nil)
        #expect(try counts(connection).records == 0)
        #expect(try connection.item(collection, "hot") == nil)
    }

    /// What a child has committed itself is not taken for somebody else's.
    @Test(arguments: ["c", "child"])
    func ownWritesLeaveOtherRecordsCached(collection: String) throws {
        let connection = try Daemon(Self.configuration()).connect()
        for id in ["1", "2"] { #expect(try connection.create(collection, id, "{}").result != nil) }
        for id in ["1", "2"] { #expect(try connection.item(collection, id) == "{}") }
        let before = try counts(connection)
        for round in 0..<10 {
            #expect(try connection.upsert(collection, "2", #"{"round":\#(round)}"#).result != nil)
            #expect(try connection.create(collection, "2", "{}").error?.name == "record_exists")
            #expect(try connection.item(collection, "1") == "{}")
        }
        #expect(try counts(connection).misses == before.misses)
        #expect(try connection.item(collection, "2") == #"{"round":9}"#)
    }
}
