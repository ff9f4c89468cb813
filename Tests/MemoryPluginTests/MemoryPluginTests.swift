import CRUDPluginABI
import CRUDPluginTesting
import PluginTestSupport
import Testing

/// The plugin `memory`, through the table that it exports.
@Suite struct MemoryPluginTests {
    private let plugin: ExportedPlugin

    init() throws {
        plugin = try ExportedPlugin("memory")
    }

    private func open(_ options: String = "{}") throws -> PluginBackend {
        try PluginBackend(plugin, options: options)
    }

    @Test func declaresWhatItCan() throws {
        let capabilities =
            CRUDD_CAN_READ_CONCURRENTLY | CRUDD_CAN_READ_FAST | CRUDD_HAS_TRANSACTIONS | CRUDD_HAS_INDEXES
            | CRUDD_HAS_SEQUENCES | CRUDD_TAKES_HISTORY | CRUDD_HAS_EXPIRY
        #expect(try open().capabilities == UInt64(capabilities))
    }

    @Test func forgetsEverythingWhenClosed() throws {
        do {
            let backend = try open()
            _ = try backend.write([.put("id", "1", in: backend.open("clients"))])
        }
        let backend = try open()
        #expect(try backend.collections() == [])
        #expect(backend.storedLastSequence == 0)
    }

    @Test func hasAVersionThatNeverChanges() throws {
        let backend = try open()
        let reader = try backend.reader()
        let version = try #require(reader.dataVersion())
        #expect(version != 0)
        _ = try backend.write([.put("id", "1", in: backend.open("clients"))])
        #expect(reader.dataVersion() == version)
    }

    // MARK: Options

    @Test(arguments: [
        "{}", #"{"max_bytes": 1}"#, #"{"max_bytes": "1B"}"#, #"{"max_bytes": "64MiB"}"#, #"{"max_bytes": "2GiB"}"#,
    ])
    func takesOptions(options: String) {
        #expect(plugin.error(inOptions: options) == nil)
    }

    @Test(arguments: [
        (#"{"max_bytes": 0}"#, "/max_bytes"), (#"{"max_bytes": -1}"#, "/max_bytes"),
        (#"{"max_bytes": 1.5}"#, "/max_bytes"), (#"{"max_bytes": "64MB"}"#, "/max_bytes"),
        (#"{"max_bytes": "64"}"#, "/max_bytes"), (#"{"max_bytes": "MiB"}"#, "/max_bytes"),
        (#"{"max_bytes": true}"#, "/max_bytes"), (#"{"max_bytes": "9223372036854775807KiB"}"#, "/max_bytes"),
        (#"{"maxbytes": 1}"#, "/maxbytes"), ("[]", ""),
    ])
    func pointsToErrors(options: String, pointer: String) throws {
        let error = try #require(plugin.error(inOptions: options))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == pointer)
    }

    // MARK: The limit

    /// Each record counts its bytes and 96: here 1 + 1 + 22 + 96 = 120.
    private static let item = String(repeating: "x", count: 22)

    @Test func refusesWhatWouldExceedTheLimit() throws {
        let backend = try open(#"{"max_bytes": 360}"#)
        let one = try backend.open("one")
        let other = try backend.open("other")
        let outcomes = try backend.write([
            .put("a", Self.item, in: one), .put("b", Self.item, in: other), .put("c", Self.item + "x", in: one),
            .put("c", Self.item, in: one), .put("d", "", in: one), .put("a", Self.item + "x", in: one),
            .put("a", "y", in: one), .put("b", Self.item + "x", in: other),
        ])
        #expect(
            outcomes == [
                .created, .created, .noSpace, .created, .noSpace, .noSpace, .replaced, .replaced,
            ])
        let reader = try backend.reader()
        #expect(try reader.scan(one) == [PluginRecord("a", "y"), PluginRecord("c", Self.item)])
        #expect(try backend.write([.put("e", Self.item, in: one)]) == [.noSpace])
        try backend.drop("other")
        #expect(try backend.write([.put("e", Self.item, in: one)]) == [.created])
        #expect(try backend.write([.remove("c", in: one), .put("f", Self.item, in: one)]) == [.removed, .created])
    }

    @Test func givesBackWhatAnUndoneBatchTook() throws {
        let backend = try open(#"{"max_bytes": 240}"#)
        let collection = try backend.open("clients")
        for _ in 0..<3 {
            let outcomes = try backend.write(
                [
                    .put("a", Self.item, in: collection), .put("b", Self.item, in: collection),
                    .put("c", Self.item, in: collection),
                ], isAtomic: true)
            #expect(outcomes == [.created, .created, .noSpace])
            #expect(try backend.reader().count(collection) == 0)
        }
        #expect(try backend.write([.put("a", Self.item, in: collection)]) == [.created])
    }

    /// A key counts its bytes and 32.
    @Test func countsKeys() throws {
        let backend = try open(#"{"max_bytes": 160}"#)
        let collection = try backend.open("one", indexes: ["name"])
        let record = PluginRecord("a", Self.item)
        let long = [UInt8](repeating: 1, count: 9)
        #expect(try backend.write([.put(record, keys: [long], in: collection)]) == [.noSpace])
        #expect(try backend.write([.put(record, keys: [], in: collection)]) == [.created])
        #expect(try backend.write([.setKeys("a", [long], ifRevision: "1", in: collection)]) == [.noSpace])
        let short = Array(long.dropLast())
        #expect(try backend.write([.setKeys("a", [short], ifRevision: "1", in: collection)]) == [.passed])
        #expect(try backend.reader().count(collection, PluginRange(.key(index: 0))) == 1)
    }

    // MARK: Transactions

    @Test func undoesAnAtomicBatchOverCollections() throws {
        let backend = try open()
        let one = try backend.open("one")
        let other = try backend.open("other")
        _ = try backend.write([.put("kept", "1", in: one)])
        let refused = try backend.write(
            [.put("a", "1", in: one), .put("b", "1", in: other), .remove("kept", in: one), .remove("none", in: other)],
            isAtomic: true)
        #expect(refused == [.created, .created, .removed, .notFound])
        let reader = try backend.reader()
        #expect(try reader.scan(one) == [PluginRecord("kept", "1")])
        #expect(try reader.count(other) == 0)
        let applied = try backend.write([.put("a", "1", in: one), .put("b", "1", in: other)], isAtomic: true)
        #expect(applied == [.created, .created])
        #expect(try reader.count(one) == 2)
        #expect(try reader.count(other) == 1)
    }

    // MARK: The tree

    /// Enough records for a tree of four levels, put and removed in random order, against a dictionary.
    @Test func staysInOrderUnderRandomChanges() throws {
        let backend = try open()
        let collection = try backend.open("many")
        let reader = try backend.reader()
        var random = SystemRandomNumberGenerator()
        var expected: [String: String] = [:]
        for phase in 0..<8 {
            for _ in 0..<20 {
                var outcomes: [PluginOutcome] = []
                let mutations = (0..<1000).map { number -> PluginMutation in
                    let id = "\(Int.random(in: 0..<30_000, using: &random))"
                    // Phases of growing and of shrinking take turns.
                    if Int.random(in: 0..<10, using: &random) < (phase.isMultiple(of: 2) ? 8 : 1) {
                        outcomes.append(expected.updateValue("\(number)", forKey: id) == nil ? .created : .replaced)
                        return .put(id, "\(number)", in: collection)
                    }
                    outcomes.append(expected.removeValue(forKey: id) == nil ? .notFound : .removed)
                    return .remove(id, in: collection)
                }
                #expect(try backend.write(mutations) == outcomes)
            }
            let inOrder = expected.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            #expect(try reader.scan(collection) == inOrder.map { PluginRecord($0.key, $0.value) })
            #expect(try reader.count(collection) == expected.count)
            #expect(
                try reader.count(collection, .prefix("12")) == expected.keys.count { $0.hasPrefix("12") })
            let after = inOrder[inOrder.count / 2].key
            let next = inOrder[(inOrder.count / 2 + 1)...].prefix(10).map(\.key)
            #expect(try reader.scan(collection, after: after, limit: 10).map(\.id) == next)
        }
        _ = try backend.write(expected.keys.map { .remove($0, in: collection) })
        #expect(try reader.scan(collection) == [])
    }

    /// A writer adds pairs; whatever readers see beside it is whole.
    @Test func readsBesideWrites() async throws {
        let backend = try open()
        let collection = try backend.open("pairs")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 0..<2000 {
                    let id = "\(number % 100)"
                    _ = try backend.write([
                        .put("a\(id)", "\(number)", in: collection), .put("b\(id)", "\(number)", in: collection),
                    ])
                }
            }
            for _ in 0..<3 {
                group.addTask {
                    let reader = try backend.reader()
                    for _ in 0..<500 {
                        let records = try reader.scan(collection)
                        let half = records.count / 2
                        #expect(records.prefix(half).map(\.item) == records.dropFirst(half).map(\.item))
                        _ = try reader.read(["a1", "b1"], in: collection)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
