import CRUDPluginABI
import CRUDTestSupport
import Testing

/// Hosts whose structs are longer or shorter than the plugin's.
@Suite struct GrowthTests {
    private let directory: TemporaryDirectory
    private let store: Store
    private let clients: OpaquePointer

    init() throws {
        directory = try TemporaryDirectory()
        store = try Store(path: "\(directory.path)/main.sqlite")
        clients = try store.collection("clients", indexes: ["n"])
    }

    /// Each struct of a batch grows without the others.
    @Test(arguments: [(24, 0, 0), (0, 40, 0), (0, 0, 16), (8, 24, 16)])
    func elementsAreFoundBySizeOfTheHost(mutation: Int, record: Int, outcome: Int) throws {
        let layout = Store.WriteLayout(
            mutationBytes: MemoryLayout<crudd_mutation>.size + mutation,
            recordBytes: MemoryLayout<crudd_record>.size + record,
            outcomeBytes: MemoryLayout<crudd_outcome>.size + outcome)
        let changes: [Change] = [
            .put("a", "1", keys: ["k"]), .put("b", "1", keys: ["l"]), .put("a", "2", "r", CRUDD_IF_ABSENT),
        ]
        #expect(try store.write(changes.map { ($0, clients) }, layout: layout) == [.created, .created, .exists])
        #expect(try store.reader().ids(clients, .key(0)) == ["a", "b"])
    }

    @Test func fieldsOfAnOlderHostAreZeros() throws {
        let layout = Store.WriteLayout(recordBytes: try #require(MemoryLayout<crudd_record>.offset(of: \.keys)))
        let changes: [Change] = [.put("a", "1", keys: ["k"]), .put("b", "1", keys: ["l"])]
        #expect(try store.write(changes.map { ($0, clients) }, layout: layout) == [.created, .created])
        let reader = try store.reader()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["a", "b"])
        #expect(try reader.metadata(clients).map(\.sequence) == [1, 2])
    }
}
