import CRUDPluginABI
import CRUDPluginKit
import CRUDPluginTesting
import Synchronization
import Testing

/// What the conformance suite cannot make happen: a crash between any two changes of the store, and damaged values.
@Suite struct KeyValueBackendTests {
    private let store = TestStore.make()

    private func open() throws -> PluginBackend {
        let table = try #require(PluginTable.export(KeyValueBackend<TestStore>.self))
        let backend = try PluginBackend(ExportedPlugin(table), options: #"{"name":"\#(store.name)"}"#)
        backend.call.now = 1000
        return backend
    }

    /// Each record once, in each order that the collection has.
    private func expectComplete(_ collection: PluginCollection, _ ids: [String], indexes: Int = 1) throws {
        let reader = try collection.backend.reader()
        #expect(try reader.scan(collection).map(\.id) == ids)
        for index in 0..<indexes {
            let keyed = try reader.scan(collection, PluginRange(.key(index: index))).map(\.id)
            let unkeyed = try reader.scan(collection, PluginRange(.unkeyed(index: index))).map(\.id)
            #expect((keyed + unkeyed).sorted() == ids)
        }
        #expect(try reader.scan(collection, .sequences()).filter { !$0.isRemoved }.map(\.id).sorted() == ids)
    }

    @Test func resumesAfterACrashBetweenAnyTwoChanges() throws {
        let ids = (0..<350).map { String(10_000 + $0) }
        do {
            let backend = try open()
            let collection = try backend.open("clients")
            _ = try backend.write(ids.map { .put(PluginRecord($0, "{}"), in: collection) })
        }
        let filled = store.pairs
        var crashes = 0
        var isOpened = false
        while !isOpened {
            store.reset(to: filled, changesBeforeCrash: crashes)
            isOpened = (try? open().open("clients", indexes: ["age"], hasSequences: true)) != nil
            crashes += 1
            store.reset(to: store.pairs)
            let collection = try open().open("clients", indexes: ["age"], hasSequences: true)
            try expectComplete(collection, ids)
            #expect(try collection.backend.reader().count(collection, PluginRange(.unkeyed(index: 0))) == ids.count)
        }
        // The number of the index, four times its entries, four times those by sequence number, and the collection.
        #expect(crashes == 11)
    }

    @Test func leavesNothingOfWhatWasDroppedInTheOrders() throws {
        let ids = (0..<350).map { String(10_000 + $0) }
        let backend = try open()
        let collection = try backend.open("clients", indexes: ["age"], hasSequences: true)
        _ = try backend.write(
            ids.map { .put(PluginRecord($0, bytes: [], expiresAt: 5000), keys: [Array($0.utf8)], in: collection) })
        _ = try backend.write([.remove(ids[0], in: collection)])
        let all = store.pairs
        for crash in 0..<20 {
            store.reset(to: all, changesBeforeCrash: crash)
            _ = try? open().open("clients", indexes: ["name"])
            store.reset(to: store.pairs)
            let reopened = try open().open("clients", indexes: ["name", "age"], hasSequences: true)
            try expectComplete(reopened, Array(ids.dropFirst()), indexes: 2)
        }
        store.reset(to: all)
        try open().drop("clients")
        // What the store notes of itself, and its identity.
        #expect(store.pairs.count == 2)
    }

    @Test func aDamagedRecordIsCorruptByItself() throws {
        let backend = try open()
        let collection = try backend.open("clients", indexes: ["age"])
        _ = try backend.write([
            .put(PluginRecord("a", "1"), keys: [[1]], in: collection),
            .put(PluginRecord("b", "2"), keys: [[2]], in: collection),
        ])
        let key = try #require(store.pairs.first { $0.value.last == UInt8(ascii: "1") }?.key)
        store.reset(to: store.pairs.merging([key: [1, 2, 3]]) { $1 })
        let reader = try backend.reader()
        #expect(try reader.scan(collection).map(\.item) == ["", "2"])
        #expect(try reader.scan(collection, PluginRange(.key(index: 0))).map(\.item) == ["", "2"])
        _ = try backend.write([.put(PluginRecord("a", "3"), keys: [[3]], in: collection)])
        #expect(try reader.read("a", in: collection)?.item == "3")
    }

    @Test func aRecordInThePlaceOfADamagedOneHasItsOwnKeysAndExpiry() throws {
        let backend = try open()
        let collection = try backend.open("clients", indexes: ["age"], hasSequences: true)
        _ = try backend.write([.put(PluginRecord("a", bytes: [65], expiresAt: 2000), keys: [[1]], in: collection)])
        let key = try #require(store.pairs.first { $0.value.last == 65 && $0.value.count > 20 }?.key)
        store.reset(to: store.pairs.merging([key: [1, 2, 3]]) { $1 })
        _ = try backend.write([.put(PluginRecord("a", bytes: [66], expiresAt: 9000), keys: [[3]], in: collection)])
        try expectComplete(collection, ["a"])
        #expect(try backend.reader().scan(collection, PluginRange(.key(index: 0), upper: [2])).isEmpty)
        backend.call.now = 3000
        let (removed, nextExpiry) = try backend.removeExpired(from: collection, limit: 10)
        #expect(removed.isEmpty)
        #expect(nextExpiry == 9000)
        #expect(try backend.reader().read("a", in: collection)?.item == "B")
    }

    @Test func opensTheStoreAgainAfterAnErrorThatSaysNothing() throws {
        let backend = try open()
        let collection = try backend.open("clients")
        store.reset(to: store.pairs, changesBeforeCrash: 0, error: TestError.powerLoss)
        let failure = #expect(throws: CallError.self) { try backend.write([.put("a", "1", in: collection)]) }
        #expect(failure?.status == CRUDD_OUTCOME_UNKNOWN)
        #expect(backend.states.map(\.isUp) == [false])
        #expect(backend.states.map(\.reason) == ["powerLoss"])
    }

    @Test func keepsFewLargeValuesInMemory() throws {
        let backend = try open()
        let collection = try backend.open("clients")
        let ids = (10..<40).map(String.init)
        let item = [UInt8](repeating: UInt8(ascii: "1"), count: 500_000)
        _ = try backend.write(ids.map { .put(PluginRecord($0, bytes: item), in: collection) })
        #expect(try backend.reader().scan(collection).map(\.id) == ids)
        #expect(store.mostVisited == 3)
        let indexed = try backend.open("clients", indexes: ["age"], hasSequences: true)
        try expectComplete(indexed, ids)
    }

    @Test func changesNothingWhereTheStoreFails() throws {
        let backend = try open()
        let collection = try backend.open("clients", hasSequences: true)
        _ = try backend.write([.put(PluginRecord("a", "1"), in: collection)])
        let before = store.pairs
        store.reset(to: before, changesBeforeCrash: 0)
        #expect(throws: CallError.self) { try backend.write([.put(PluginRecord("a", "2"), in: collection)]) }
        #expect(throws: CallError.self) { try backend.write([.remove("a", in: collection)]) }
        #expect(store.pairs == before)
        store.reset(to: before)
        #expect(try backend.reader().read("a", in: collection)?.item == "1")
        try expectComplete(collection, ["a"], indexes: 0)
    }
}

private enum TestError: Error { case powerLoss }

/// Pairs that outlive the store, which fails from some change on.
private final class TestStore: KeyValueStore {
    struct Options: PluginOptions {
        enum Key: String, CaseIterable { case name }

        let name: String

        init(_ reader: OptionReader<Key>) throws(StorageFailure) { name = try reader.string(.name) }
    }

    /// What is left of a store when it is closed.
    final class Storage: Sendable {
        private struct State {
            var pairs: [StoredKey: [UInt8]] = [:]
            var changesBeforeCrash = Int.max
            var error: any Error & Sendable = StorageFailure(.unavailable, "the store has crashed")
            var mostVisited = 0
        }

        let name: String
        private let state = Mutex(State())

        init(name: String) {
            self.name = name
        }

        var pairs: [StoredKey: [UInt8]] { state.withLock { $0.pairs } }

        /// The most values that a scan has handed over.
        var mostVisited: Int { state.withLock { $0.mostVisited } }

        func reset(
            to pairs: [StoredKey: [UInt8]], changesBeforeCrash: Int = .max,
            error: any Error & Sendable = StorageFailure(.unavailable, "the store has crashed")
        ) {
            state.withLock { $0 = State(pairs: pairs, changesBeforeCrash: changesBeforeCrash, error: error) }
        }

        func visited(_ count: Int) { state.withLock { $0.mostVisited = max($0.mostVisited, count) } }

        func apply(_ changes: [StoredKey: [UInt8]?]) throws {
            try state.withLock { state in
                guard state.changesBeforeCrash > 0 else { throw state.error }
                state.changesBeforeCrash -= 1
                for (key, value) in changes { state.pairs[key] = value }
            }
        }
    }

    static let name = "test"
    static let version = "1"
    private static let storages = Mutex<[String: Storage]>([:])
    private let storage: Storage

    static func make() -> Storage {
        storages.withLock { storages in
            let storage = Storage(name: "store \(storages.count)")
            storages[storage.name] = storage
            return storage
        }
    }

    init(options: Options, host: Host) throws(StorageFailure) {
        guard let storage = Self.storages.withLock({ $0[options.name] }) else {
            throw StorageFailure(.invalidOptions, "there is no such store")
        }
        self.storage = storage
    }

    func value(for key: StoredKey) -> [UInt8]? { storage.pairs[key] }

    func scan(_ range: Range<StoredKey>, isReversed: Bool, _ visit: (StoredKey, [UInt8]) -> Bool) {
        let found = storage.pairs.filter { range.contains($0.key) }.sorted { $0.key < $1.key }
        var count = 0
        for pair in isReversed ? found.reversed() : found {
            count += pair.value.isEmpty ? 0 : 1
            if !visit(pair.key, pair.value) { break }
        }
        storage.visited(count)
    }

    func apply(_ changes: [StoredKey: [UInt8]?]) throws { try storage.apply(changes) }
}
