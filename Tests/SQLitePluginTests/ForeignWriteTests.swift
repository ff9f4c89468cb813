import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// The number by which a cache learns that another process has written.
@Suite struct ForeignWriteTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection
    private let reader: PluginReader
    private let inspector: Inspector

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path)
        clients = try backend.open("clients")
        reader = try backend.reader()
        inspector = try Inspector(path)
    }

    @Test func staysWhateverThisBackendDoes() throws {
        let version = try #require(reader.dataVersion())
        #expect(version != 0)
        let item = String(repeating: "x", count: 4000)
        for batch in 0..<100 {
            // Now and then a batch that changes nothing, or is undone.
            let isRefused = batch % 10 == 3
            let changes: [PluginMutation] = [
                .put("a", "1", in: clients), .put("b\(batch)", item, if: isRefused ? .present : .none, in: clients),
            ]
            _ = try backend.write(isRefused && batch % 20 == 3 ? [changes[1]] : changes, isAtomic: isRefused)
            #expect(reader.dataVersion() == version)
        }
        _ = try reader.scan(clients)
        _ = try backend.open("others", indexes: ["a"])
        _ = try backend.open("clients", indexes: ["a"])
        try backend.drop("others")
        for batch in 0..<60 { _ = try backend.write((0..<200).map { .put("\(batch).\($0)", item, in: clients) }) }
        backend.idle()
        _ = try inspector.rows("SELECT count(*) FROM clients")
        #expect(reader.dataVersion() == version)
        #expect(try backend.reader().dataVersion() == version)
    }

    @Test func changesWithEachForeignWrite() throws {
        var version = reader.dataVersion()
        func expectChange(_ context: String) {
            let next = reader.dataVersion()
            #expect(next != version, "\(context)")
            #expect(reader.dataVersion() == next)
            version = next
        }
        try inspector.execute("INSERT INTO clients (id, item) VALUES ('a', '1')")
        expectChange("one statement")
        try inspector.execute("UPDATE clients SET item = '2'")
        _ = try backend.write([.put("b", "1", in: clients)])
        expectChange("then a write of our own")
        _ = try backend.write([.put("b", "2", in: clients)])
        try inspector.execute("UPDATE clients SET item = '3'")
        expectChange("after a write of our own")
        _ = try backend.write([.put("x", "1", if: .present, in: clients)])
        try inspector.execute("UPDATE clients SET item = '4'")
        expectChange("after a batch that changed nothing")
        _ = try reader.scan(clients)
        try inspector.execute("CREATE TABLE mine (x)")
        expectChange("while a snapshot is held")
        try inspector.execute("PRAGMA wal_checkpoint(TRUNCATE); VACUUM")
        expectChange("a checkpoint and a new file")
        try inspector.execute("BEGIN; UPDATE clients SET item = '5'; ROLLBACK")
        #expect(reader.dataVersion() == version, "nothing was committed")
    }

    @Test func changesOncePerReader() throws {
        let other = try backend.reader()
        let versions = (reader.dataVersion(), other.dataVersion())
        try inspector.execute("INSERT INTO clients (id, item) VALUES ('a', '1')")
        #expect(reader.dataVersion() != versions.0)
        #expect(other.dataVersion() != versions.1)
    }
}
