import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// When records expire, as their files say.
@Suite struct ExpiryTests {
    private let directory: RecordDirectory
    private let backend: PluginBackend
    private let collection: PluginCollection
    private let reader: PluginReader

    init() throws {
        directory = try RecordDirectory()
        backend = try directory.open(fsync: false)
        backend.call.now = 1000
        collection = try backend.open("clients")
        reader = try backend.reader()
    }

    private func put(_ id: String, expiresAt: Int64) -> PluginMutation {
        .put(PluginRecord(id, bytes: Array("{}".utf8), expiresAt: expiresAt), in: collection)
    }

    @Test func keepsExpiryInAnAttribute() throws {
        _ = try backend.write([put("a", expiresAt: 1001), put("b", expiresAt: 0)])
        #expect(directory.attribute("user.crudd.expires", of: "clients/item_a.json") == "1001")
        #expect(directory.attribute("user.crudd.expires", of: "clients/item_b.json") == nil)
        #expect(try reader.read(["a", "b"], in: collection).map { $0?.expiresAt } == [1001, 0])
        _ = try backend.write([put("a", expiresAt: 0)])
        #expect(directory.attribute("user.crudd.expires", of: "clients/item_a.json") == nil)
    }

    @Test func hidesWhatHasExpired() throws {
        _ = try backend.write([
            put("a", expiresAt: 1000), put("b", expiresAt: 1001), put("c", expiresAt: 0), put("d", expiresAt: 1),
            put("e", expiresAt: 0),
        ])
        #expect(try reader.read(["a", "b"], in: collection).map { $0?.id } == [nil, "b"])
        #expect(try reader.scan(collection).map(\.id) == ["b", "c", "e"])
        #expect(try reader.scan(collection, isReversed: true).map(\.id) == ["e", "c", "b"])
        #expect(try reader.scan(collection, limit: 1).map(\.id) == ["b"])
        #expect(try reader.scan(collection, after: "c", limit: 1).map(\.id) == ["e"])
        #expect(try reader.scan(collection, isReversed: true, after: "e", limit: 2).map(\.id) == ["c", "b"])
        #expect(try reader.count(collection) == 3)
        #expect(try reader.count(collection, .prefix("a")) == 0)
        backend.call.now = 2000
        #expect(try reader.count(collection) == 2)
        let outcomes = try backend.write([
            .remove("a", in: collection), .put("a", "1", if: .revision("1"), in: collection),
            .put("a", "1", if: .absent, in: collection), .put("b", "1", in: collection),
        ])
        #expect(outcomes == [.notFound, .notFound, .created, .created])
        #expect(try reader.count(collection) == 4)
    }

    @Test func countsAfterReopening() throws {
        _ = try backend.write([put("a", expiresAt: 1000), put("b", expiresAt: 0)])
        #expect(try reader.count(collection) == 1)
        let other = try RecordDirectory()
        // As a backup would be restored.
        let outcome = try Command.run("/usr/bin/cp", ["-a", directory.path, other.path])
        #expect(outcome.status == .exited(0))
        let restored = try other.open()
        #expect(try restored.reader().count(restored.open("clients")) == 1)
    }

    /// A file keeps its attributes when its content is edited; a new one in its place has none.
    @Test func keepsTheExpiryOfEditedFiles() throws {
        _ = try backend.write([put("a", expiresAt: 1001)])
        try directory.write("[1]", to: "clients/item_a.json")
        let edited = try #require(try reader.read("a", in: collection))
        #expect(edited.expiresAt == 1001)
        #expect(edited.sequence == 0)
        backend.call.now = 1001
        #expect(try reader.read("a", in: collection) == nil)
        try directory.write("[2]", to: "other")
        Files.remove("\(directory.path)/clients/item_a.json")
        try Files.copy("\(directory.path)/other", to: "\(directory.path)/clients/item_a.json", mode: 0o600)
        #expect(try reader.read("a", in: collection)?.expiresAt == 0)
    }

    @Test(arguments: ["", "x", "1.5", " 1", "9223372036854775808"])
    func ignoresOtherValues(value: String) throws {
        try directory.write("{}", to: "clients/item_a.json")
        try directory.setAttribute("user.crudd.expires", to: value, of: "clients/item_a.json")
        try directory.setAttribute("user.crudd.sequence", to: value, of: "clients/item_a.json")
        let record = try #require(try reader.read("a", in: collection))
        #expect(record.expiresAt == 0)
        #expect(record.sequence == 0)
    }
}
