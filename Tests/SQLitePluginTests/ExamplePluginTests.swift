import CRUDPluginABI
import CRUDTestSupport
import Testing

/// The example in C: compiled against the header alone, without a warning, and used.
@Suite struct ExamplePluginTests {
    private let directory: TemporaryDirectory
    private let store: Store
    private let clients: OpaquePointer

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
        store = try Store(Plugin(path: "\(directory.path)/example.so"), options: "{}")
        clients = try store.collection("clients")
    }

    @Test(arguments: [true, false])
    func honoursPreconditions(isThere: Bool) throws {
        for test in WritingTests.cases where test.change.kind <= CRUDD_REMOVE && test.change.precondition <= 3 {
            let collection = try store.collection("each")
            if isThere { try store.write([.put("a", "old", "r0")], to: collection) }
            let expected = isThere ? test.there : test.missing
            #expect(try store.write([test.change], to: collection) == [expected], "\(test.testDescription)")
            try store.dropCollection("each")
        }
    }

    @Test func readsWhatItHasStored() throws {
        let ids = OddNames.all
        try store.write(ids.enumerated().map { .put($0.element, "\($0.offset)") }, to: clients)
        let reader = try store.reader()
        #expect(try reader.read(ids, in: clients) == ids.enumerated().map { Record($0, $1, "\($0)") })
        #expect(try reader.read(["x", "main"], in: clients, withItems: false) == [Record(1, "main", "")])
        #expect(try reader.count(clients) == UInt64(ids.count))
        let sorted = ids.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(try reader.scan(clients).map(\.id) == sorted)
        #expect(
            try reader.ids(clients, .after("main"), limit: 2) == ["main.clients", "pragma_table_info"])
        #expect(try reader.ids(clients, .prefix("crudd_")) == ["crudd_1_clients", "crudd_collections"])
        #expect(try reader.count(clients, .prefix("crudd_")) == 2)
        #expect(try store.collectionNames() == ["clients"])
    }

    @Test func refusesWhatItDoesNotDeclare() throws {
        let refusal = try failure { _ = try store.write([.put("a", "1")], to: clients, isAtomic: true) }
        #expect(refusal?.status == CRUDD_UNSUPPORTED)
        #expect(try store.reader().count(clients) == 0)
        #expect(try failure { try store.plugin.checkOptions(#"{"x": 1}"#) }?.message == "this plugin has no options")
    }
}
