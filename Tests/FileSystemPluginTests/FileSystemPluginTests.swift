import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// What the plugin `filesystem` does beyond the plugin contract, on a real directory.
@Suite struct FileSystemPluginTests {
    private let directory: RecordDirectory
    private let plugin: ExportedPlugin

    init() throws {
        directory = try RecordDirectory()
        plugin = try ExportedPlugin("filesystem")
    }

    @Test func keepsRecordsWhenClosed() throws {
        do {
            let backend = try directory.open()
            _ = try backend.write([.put("id", "1", revision: "7", in: backend.open("clients"))])
        }
        let backend = try directory.open()
        #expect(try backend.collections() == ["clients"])
        let collection = try backend.open("clients", creates: false)
        #expect(try backend.reader().read("id", in: collection) == PluginRecord("id", "1", revision: "7"))
    }

    @Test func declaresDurabilityAsConfigured() throws {
        let capabilities = UInt64(CRUDD_CAN_READ_CONCURRENTLY | CRUDD_HAS_EXPIRY)
        let durable = capabilities | UInt64(CRUDD_IS_DURABLE)
        #expect(plugin.capabilities == durable)
        #expect(try directory.open().capabilities == durable)
        #expect(try directory.open(fsync: false).capabilities == capabilities)
    }

    @Test func refusesTransactions() throws {
        let backend = try directory.open()
        let collection = try backend.open("clients")
        let error = #expect(throws: CallError.self) {
            try backend.write([.put("id", "1", in: collection)], isAtomic: true)
        }
        #expect(error?.status == CRUDD_UNSUPPORTED)
        #expect(try backend.reader().count(collection) == 0)
    }

    @Test func scansTenThousandRecordsInOrder() throws {
        let backend = try directory.open(fsync: false)
        let collection = try backend.open("many")
        let ids = (0..<10_000).map { "\($0 * 7919 % 10_007)/\($0 % 3)" }
        for start in stride(from: 0, to: ids.count, by: 1000) {
            let batch = ids[start..<(start + 1000)]
            let outcomes = try backend.write(batch.map { .put($0, "{}", if: .absent, in: collection) })
            #expect(outcomes == batch.map { _ in .created })
        }
        let inOrder = ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let reader = try backend.reader()
        #expect(try reader.scan(collection, withItems: false).map(\.id) == inOrder)
        var paged: [String] = []
        while true {
            let page = try reader.scan(collection, after: paged.last ?? "", limit: 700)
            if page.isEmpty { break }
            paged += page.map(\.id)
        }
        #expect(paged == inOrder)
        #expect(try reader.count(collection) == ids.count)
        let reversed = try reader.scan(collection, isReversed: true, after: inOrder[5000], limit: 700)
        #expect(reversed.map(\.id) == inOrder[..<5000].suffix(700).reversed())
        let part = PluginRange(lower: Array("2".utf8), upper: Array("5".utf8))
        #expect(try reader.count(collection, part) == ids.count { $0 >= "2" && $0 < "5" })
        // Asked every few milliseconds.
        backend.call.isInterrupted = { true }
        let error = #expect(throws: CallError.self) { try reader.scan(collection) }
        #expect(error?.status == CRUDD_INTERRUPTED)
    }

    @Test func writesManyCollectionsInOneBatch() throws {
        let backend = try directory.open(fsync: false)
        let collections = try (0..<150).map { try backend.open("c\($0)") }
        let outcomes = try backend.write(collections.map { .put("id", "1", in: $0) })
        #expect(outcomes == collections.map { _ in .created })
        let reader = try backend.reader()
        for collection in collections { #expect(try reader.count(collection) == 1) }
    }

    /// Beside a writer, every read finds one whole state of the record.
    @Test func readsBesideWrites() async throws {
        let backend = try directory.open(fsync: false)
        let collection = try backend.open("clients")
        let states = (0..<10).map { String(repeating: "\($0)", count: 5000 * ($0 + 1)) }
        _ = try backend.write([.put("id", states[0], revision: "0", in: collection)])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 0..<1000 {
                    let outcomes = try backend.write([
                        .put("id", states[number % 10], revision: "\(number % 10)", in: collection)
                    ])
                    #expect(outcomes == [.replaced])
                }
            }
            for _ in 0..<2 {
                group.addTask {
                    let reader = try backend.reader()
                    for _ in 0..<1000 {
                        let record = try #require(try reader.read("id", in: collection))
                        #expect(record.item == states[try #require(Int(record.revision))])
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
