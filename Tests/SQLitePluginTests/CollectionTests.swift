import CRUDPluginABI
import CRUDTestSupport
import Testing

@Suite struct CollectionTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path)
    }

    @Test func opensWhatIsThereAndMakesWhatIsAskedFor() throws {
        let failure = try failure { _ = try store.collection("clients", creates: false) }
        #expect(failure?.status == CRUDD_NOT_FOUND)
        #expect(try store.collectionNames() == [])
        let clients = try store.collection("clients")
        #expect(try store.collection("clients", creates: false) == clients)
        #expect(try store.collection("clients") == clients, "it stays the same")
        #expect(try store.collectionNames() == ["clients"])
    }

    @Test func keepsATableThatPeopleCanRead() throws {
        try store.write([.put("ann", #"{"name":"Ann"}"#, "r1")], to: store.collection("clients"))
        try store.write([.put("x", "<plist/>")], to: store.collection("papers", format: "xml"))
        try store.write([.put("x", "bplist00")], to: store.collection("boxes", format: "plist"))
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
            try store.write([.put("id", "\(index)", "r\(index)")], to: store.collection(name))
        }
        // Opened again, so that nothing comes from memory.
        let other = try Store(path: path)
        let reader = try other.reader()
        for (index, name) in names.enumerated() {
            let collection = try other.collection(name, creates: false)
            #expect(try reader.read(["id"], in: collection) == [Record(0, "id", "\(index)", "r\(index)")], "\(name)")
            #expect(try reader.count(collection) == 1, "\(name)")
        }
        let listed = try other.collectionNames().map { Array($0.utf8) }
        #expect(Set(listed) == Set(names.map { Array($0.utf8) }))
        #expect(listed.count == names.count)
        let tables = try Inspector(path).rows("SELECT hex(lower(table_name)) FROM crudd_collections")
        #expect(Set(tables).count == names.count)
    }

    @Test func leavesATableAloneThatSomebodyHasMade() throws {
        let inspector = try Inspector(path)
        try inspector.execute(
            "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine'); CREATE VIEW ideas AS SELECT 1")
        try store.write([.put("a", "1")], to: store.collection("Notes"))
        try store.write([.put("a", "2")], to: store.collection("ideas"))
        #expect(try inspector.rows("SELECT text FROM notes") == [["mine"]])
        #expect(try store.reader().item("a", in: store.collection("Notes")) == "1")
    }

    @Test func keepsFormatsApart() throws {
        let json = try store.collection("clients")
        try store.write([.put("a", "{}")], to: json)
        #expect(
            try failure { _ = try store.collection("clients", format: "xml", creates: false) }?.status
                == CRUDD_NOT_FOUND)
        let xml = try store.collection("clients", format: "xml")
        #expect(xml != json)
        #expect(try store.reader().count(xml) == 0)
        #expect(try store.reader().count(json) == 1)
        #expect(try store.collectionNames() == ["clients"])
        #expect(try failure { _ = try store.collection("x", format: "cbor") }?.status == CRUDD_UNSUPPORTED)
    }

    @Test func dropsACollectionWithItsRecords() throws {
        try store.write([.put("a", "1")], to: store.collection("clients"))
        try store.write([.put("a", "2")], to: store.collection("Clients"))
        let reader = try store.reader()
        #expect(try reader.item("a", in: store.collection("clients")) == "1")
        try store.dropCollection("clients")
        #expect(try store.collectionNames() == ["Clients"])
        #expect(try failure { try store.dropCollection("clients") }?.status == CRUDD_NOT_FOUND)
        #expect(try failure { _ = try store.collection("clients", creates: false) }?.status == CRUDD_NOT_FOUND)
        let recreated = try store.collection("clients")
        #expect(try reader.count(recreated) == 0)
        #expect(try reader.item("a", in: store.collection("Clients")) == "2")
    }

    @Test func readsACollectionThatIsYoungerThanTheSnapshot() throws {
        let reader = try store.reader()
        #expect(try reader.count(store.collection("old")) == 0)
        let young = try store.collection("young")
        try store.write([.put("a", "1")], to: young)
        #expect(try reader.item("a", in: young) == "1")
    }

    @Test func usesMoreCollectionsThanItKeepsStatementsOf() throws {
        let collections = try (0..<600).map { try store.collection("c\($0)") }
        _ = try store.write(collections.enumerated().map { (.put("a", "\($0.offset)"), $0.element) })
        let reader = try store.reader()
        for _ in 0..<2 {
            for (index, collection) in collections.enumerated() {
                #expect(try reader.item("a", in: collection) == "\(index)")
            }
        }
    }

    @Test func saysWhichTableIsMissing() throws {
        _ = try store.collection("clients")
        try Inspector(path).execute("DROP TABLE clients")
        let other = try Store(path: path)
        let failure = try #require(try failure { _ = try other.collection("clients") })
        #expect(failure.status == CRUDD_CORRUPT)
        #expect(failure.message.contains("the table clients of collection clients is missing"))
    }
}
