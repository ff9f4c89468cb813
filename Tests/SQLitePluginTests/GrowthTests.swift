import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// Hosts whose structs are longer or shorter than the plugin's.
@Suite struct GrowthTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test(arguments: [8, 24, 40])
    func elementsAreFoundBySizeOfTheHost(surplus: Int) throws {
        let backend = try PluginBackend(path: "\(directory.path)/main.sqlite", surplus: surplus)
        let clients = try backend.open("clients", indexes: ["n"])
        let outcomes = try backend.write([
            .put("a", "1", keys: ["k"], in: clients), .put("b", "1", keys: ["l"], in: clients),
            .put("a", "2", if: .absent, in: clients),
        ])
        #expect(outcomes == [.created, .created, .exists])
        #expect(try backend.reader().ids(clients, .keys(0)) == ["a", "b"])
    }

    @Test func fieldsOfAnOlderHostAreZeros() throws {
        let backend = try PluginBackend(path: "\(directory.path)/main.sqlite")
        let clients = try backend.open("clients", indexes: ["n"])
        let recordBytes = try #require(MemoryLayout<crudd_record>.offset(of: \.keys))
        let outcomes = try backend.write(
            [("a", "k"), ("b", "l")].map { id, key in
                var mutation = PluginMutation.put(id, "1", keys: [key], in: clients)
                mutation.recordBytes = recordBytes
                return mutation
            })
        #expect(outcomes == [.created, .created])
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .unkeyed(0)) == ["a", "b"])
        #expect(try reader.scan(clients).map(\.sequence) == [1, 2])
    }
}
