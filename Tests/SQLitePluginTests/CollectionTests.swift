import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Testing

@Suite struct CollectionTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path)
    }

    @Test func opensWhatIsThereAndMakesWhatIsAskedFor() throws {
        let failure = try failure { try backend.open("clients", creates: false) }
        #expect(failure?.status == CRUDD_NOT_FOUND)
        #expect(try backend.collections() == [])
        let clients = try backend.open("clients")
        #expect(try backend.open("clients", creates: false) == clients)
        #expect(try backend.open("clients") == clients, "it stays the same")
        #expect(try backend.collections() == ["clients"])
    }

    @Test func keepsATableThatPeopleCanRead() throws {
        _ = try backend.write([.put("ann", #"{"name":"Ann"}"#, revision: "r1", in: backend.open("clients"))])
        _ = try backend.write([.put("x", "<plist/>", in: backend.open("papers", format: "xml"))])
        _ = try backend.write([.put("x", "bplist00", in: backend.open("boxes", format: "plist"))])
        let inspector = try Inspector(path)
        #expect(try inspector.rows("SELECT id, item FROM clients") == [["ann", #"{"name":"Ann"}"#]])
        #expect(
            try inspector.rows("SELECT item ->> 'name', typeof(item), revision FROM clients") == [
                ["Ann", "text", "r1"]
            ])
        #expect(try inspector.rows("SELECT typeof(item) FROM papers") == [["text"]])
        #expect(try inspector.rows("SELECT typeof(item) FROM boxes") == [["blob"]])
        #expect(
            try inspector.rows("SELECT name, table_name, format FROM crudd_collections ORDER BY number") == [
                ["clients", "clients", "json"], ["papers", "papers", "xml"], ["boxes", "boxes", "plist"],
            ])
    }

    @Test func tellsAnyNamesApart() throws {
        let names = OddNames.all
        for (index, name) in names.enumerated() {
            _ = try backend.write([.put("id", "\(index)", revision: "r\(index)", in: backend.open(name))])
        }
        // Opened again, so that nothing comes from memory.
        let other = try PluginBackend(path: path)
        let reader = try other.reader()
        for (index, name) in names.enumerated() {
            let collection = try other.open(name, creates: false)
            let record = PluginRecord("id", "\(index)", revision: "r\(index)")
            #expect(try reader.read("id", in: collection) == record, "\(name)")
            #expect(try reader.count(collection) == 1, "\(name)")
        }
        let listed = try other.collections().map { Array($0.utf8) }
        #expect(Set(listed) == Set(names.map { Array($0.utf8) }))
        #expect(listed.count == names.count)
        let tables = try Inspector(path).rows("SELECT hex(lower(table_name)) FROM crudd_collections")
        #expect(Set(tables).count == names.count)
    }

    @Test func leavesATableAloneThatSomebodyHasMade() throws {
        let inspector = try Inspector(path)
        try inspector.execute(
            "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine'); CREATE VIEW ideas AS SELECT 1")
        _ = try backend.write([.put("a", "1", in: backend.open("Notes"))])
        _ = try backend.write([.put("a", "2", in: backend.open("ideas"))])
        #expect(try inspector.rows("SELECT text FROM notes") == [["mine"]])
        #expect(try backend.reader().read("a", in: backend.open("Notes"))?.item == "1")
    }

    @Test func keepsFormatsApart() throws {
        let json = try backend.open("clients")
        _ = try backend.write([.put("a", "{}", in: json)])
        #expect(
            try failure { try backend.open("clients", format: "xml", creates: false) }?.status
                == CRUDD_NOT_FOUND)
        let xml = try backend.open("clients", format: "xml")
        #expect(xml != json)
        #expect(try backend.reader().count(xml) == 0)
        #expect(try backend.reader().count(json) == 1)
        #expect(try backend.collections() == ["clients"])
        #expect(try failure { try backend.open("x", format: "cbor") }?.status == CRUDD_UNSUPPORTED)
    }

    @Test func dropsACollectionWithItsRecords() throws {
        _ = try backend.write([.put("a", "1", in: backend.open("clients"))])
        _ = try backend.write([.put("a", "2", in: backend.open("Clients"))])
        let reader = try backend.reader()
        #expect(try reader.read("a", in: backend.open("clients"))?.item == "1")
        try backend.drop("clients")
        #expect(try backend.collections() == ["Clients"])
        #expect(try failure { try backend.drop("clients") }?.status == CRUDD_NOT_FOUND)
        #expect(try failure { try backend.open("clients", creates: false) }?.status == CRUDD_NOT_FOUND)
        let recreated = try backend.open("clients")
        #expect(try reader.count(recreated) == 0)
        #expect(try reader.read("a", in: backend.open("Clients"))?.item == "2")
    }

    @Test func readsACollectionThatIsYoungerThanTheSnapshot() throws {
        let reader = try backend.reader()
        #expect(try reader.count(backend.open("old")) == 0)
        let young = try backend.open("young")
        _ = try backend.write([.put("a", "1", in: young)])
        #expect(try reader.read("a", in: young)?.item == "1")
    }

    @Test func usesMoreCollectionsThanItKeepsStatementsOf() throws {
        let collections = try (0..<600).map { try backend.open("c\($0)") }
        _ = try backend.write(collections.enumerated().map { .put("a", "\($0)", in: $1) })
        let reader = try backend.reader()
        for _ in 0..<2 {
            for (index, collection) in collections.enumerated() {
                #expect(try reader.read("a", in: collection)?.item == "\(index)")
            }
        }
    }

    @Test func saysWhichTableIsMissing() throws {
        _ = try backend.open("clients")
        try Inspector(path).execute("DROP TABLE clients")
        let other = try PluginBackend(path: path)
        let failure = try #require(try failure { try other.open("clients") })
        #expect(failure.status == CRUDD_CORRUPT)
        #expect(failure.message.contains("the table clients of collection clients is missing"))
    }
}
