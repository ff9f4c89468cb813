import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// The example in C: compiled against the header alone, without a warning, and used.
@Suite struct ExamplePluginTests {
    private let directory: TemporaryDirectory
    private let backend: PluginBackend
    private let clients: PluginCollection

    init() throws {
        directory = try TemporaryDirectory()
        let contract = "\(BuildProducts.packageDirectory)/Sources/CRUDPluginABI"
        let outcome = try Command.run(
            "clang",
            [
                "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I",
                "\(contract)/include",
                "-o", "\(directory.path)/example.so", "\(BuildProducts.packageDirectory)/Plugins/Examples/memory.c",
            ])
        try #require(outcome.status == .exited(0), "\(outcome.errors)")
        backend = try PluginBackend(ExportedPlugin(path: "\(directory.path)/example.so"), options: "{}")
        clients = try backend.open("clients")
    }

    @Test(arguments: [true, false])
    func honoursPreconditions(isThere: Bool) throws {
        for test in WritingTests.cases where [.put, .remove].contains(test.kind) {
            let collection = try backend.open("each")
            if isThere { _ = try backend.write([.put("a", "old", revision: "r0", in: collection)]) }
            let expected = isThere ? test.there : test.missing
            #expect(try backend.write([test.change(in: collection)]) == [expected], "\(test.testDescription)")
            try backend.drop("each")
        }
    }

    @Test func readsWhatItHasStored() throws {
        let ids = OddNames.all
        _ = try backend.write(ids.enumerated().map { .put($0.element, "\($0.offset)", in: clients) })
        let reader = try backend.reader()
        #expect(try reader.read(ids, in: clients) == ids.enumerated().map { PluginRecord($1, "\($0)") })
        #expect(try reader.read(["x", "main"], in: clients, withItems: false) == [nil, PluginRecord("main", "")])
        #expect(try reader.count(clients) == ids.count)
        let sorted = ids.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(try reader.scan(clients).map { Array($0.id.utf8) } == sorted)
        #expect(try reader.ids(clients, after: "main", limit: 2) == ["main.clients", "pragma_table_info"])
        #expect(try reader.ids(clients, .prefix("crudd_")) == ["crudd_1_clients", "crudd_collections"])
        #expect(try reader.count(clients, .prefix("crudd_")) == 2)
        #expect(try backend.collections() == ["clients"])
    }

    @Test func refusesWhatItDoesNotDeclare() throws {
        let refusal = try failure { try backend.write([.put("a", "1", in: clients)], isAtomic: true) }
        #expect(refusal?.status == CRUDD_UNSUPPORTED)
        #expect(try backend.reader().count(clients) == 0)
        #expect(backend.plugin.error(inOptions: #"{"x": 1}"#)?.message == "this plugin has no options")
    }
}
