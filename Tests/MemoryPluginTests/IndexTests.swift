import CRUDPluginABI
import CRUDPluginTesting
import PluginTestSupport
import Testing

/// The orders of a collection beside that by id.
@Suite struct IndexTests {
    private let backend: PluginBackend
    private let collection: PluginCollection
    private let reader: PluginReader

    init() throws {
        backend = try PluginBackend(ExportedPlugin("memory"), options: "{}")
        backend.call.now = 1000
        collection = try backend.open("clients", indexes: ["name", "age"], hasSequences: true)
        reader = try backend.reader()
    }

    private func put(
        _ id: String, _ keys: String..., item: String = "{}", expiresAt: Int64 = 0
    ) -> PluginMutation {
        .put(
            PluginRecord(id, bytes: Array(item.utf8), expiresAt: expiresAt), keys: keys.map { Array($0.utf8) },
            in: collection)
    }

    private func ids(
        _ range: PluginRange, isReversed: Bool = false, after: (key: String, id: String) = ("", ""), limit: Int = 0,
        of collection: PluginCollection? = nil
    ) throws -> [String] {
        try reader.scan(
            collection ?? self.collection, range, isReversed: isReversed, afterKey: Array(after.key.utf8),
            after: after.id, limit: limit
        ).map(\.id)
    }

    private func keys(_ index: Int, from lower: String = "", to upper: String = "") -> PluginRange {
        PluginRange(.key(index: index), lower: Array(lower.utf8), upper: Array(upper.utf8))
    }

    private func unkeyed(_ index: Int) -> PluginRange { PluginRange(.unkeyed(index: index)) }

    // MARK: Keys

    @Test func scansByKeyAndThenById() throws {
        _ = try backend.write([
            put("4", "b", "x"), put("2", "ab"), put("5", "a"), put("3", "b"), put("1", "", "y"), put("6", "a\u{0}"),
        ])
        #expect(try ids(keys(0)) == ["5", "6", "2", "3", "4"])
        #expect(try ids(keys(0), isReversed: true) == ["4", "3", "2", "6", "5"])
        #expect(try ids(keys(1)) == ["4", "1"])
        #expect(try ids(keys(0, from: "ab")) == ["2", "3", "4"])
        #expect(try ids(keys(0, to: "ab")) == ["5", "6"])
        #expect(try ids(keys(0, from: "a\u{0}", to: "b"), isReversed: true) == ["2", "6"])
        #expect(try ids(keys(0, from: "b", to: "ab")) == [])
        #expect(try reader.count(collection, keys(0)) == 5)
        #expect(try reader.count(collection, keys(0, from: "a\u{0}", to: "b")) == 2)
        #expect(try reader.count(collection, keys(0, from: "b", to: "ab")) == 0)
    }

    @Test func resumesBehindAKeyAndAnId() throws {
        _ = try backend.write([put("1", "a"), put("2", "b"), put("3", "b"), put("4", "b"), put("5", "c")])
        #expect(try ids(keys(0), after: ("b", "3")) == ["4", "5"])
        #expect(try ids(keys(0), isReversed: true, after: ("b", "3")) == ["2", "1"])
        #expect(try ids(keys(0), after: ("b", "3"), limit: 1) == ["4"])
        // The record itself may be gone.
        _ = try backend.write([.remove("3", in: collection)])
        #expect(try ids(keys(0), after: ("b", "3")) == ["4", "5"])
        #expect(try ids(keys(0), isReversed: true, after: ("b", "3")) == ["2", "1"])
        // A place outside the range does not widen it.
        #expect(try ids(keys(0, from: "b"), after: ("a", "1")) == ["2", "4", "5"])
        #expect(try ids(keys(0, to: "b"), isReversed: true, after: ("c", "5")) == ["1"])
    }

    @Test func replacesAndRemovesKeys() throws {
        _ = try backend.write([put("1", "a", "x"), put("2", "b", "x")])
        _ = try backend.write([put("1", "c", "x", item: "new"), .remove("2", in: collection)])
        #expect(try ids(keys(0)) == ["1"])
        #expect(try reader.scan(collection, keys(0)).first?.item == "new")
        #expect(try reader.scan(collection, keys(1)).first?.item == "new")
        _ = try backend.write([put("1")])
        #expect(try ids(keys(0)) == [])
        #expect(try ids(unkeyed(0)) == ["1"])
    }

    @Test func listsTheUnkeyed() throws {
        _ = try backend.write([put("3", "a"), put("2"), put("4", "", "x"), put("1"), put("5", "a", "x")])
        #expect(try ids(unkeyed(0)) == ["1", "2", "4"])
        #expect(try ids(unkeyed(0), isReversed: true) == ["4", "2", "1"])
        #expect(try ids(unkeyed(1)) == ["1", "2", "3"])
        #expect(try ids(unkeyed(0), after: ("", "1"), limit: 1) == ["2"])
        #expect(try ids(unkeyed(0), isReversed: true, after: ("", "4"), limit: 1) == ["2"])
        #expect(try reader.count(collection, unkeyed(0)) == 3)
        let bounded = PluginRange(.unkeyed(index: 0), lower: Array("2".utf8), upper: Array("4".utf8))
        #expect(try ids(bounded) == ["2"])
    }

    @Test func setsKeys() throws {
        _ = try backend.write([put("1", item: "one", expiresAt: 2000), put("2", "b")])
        let sequence = try #require(try reader.read("1", in: collection)).sequence
        let outcomes = try backend.write([
            .setKeys("1", [Array("a".utf8)], ifRevision: "1", in: collection),
            .setKeys("2", [Array("z".utf8)], ifRevision: "stale", in: collection),
            .setKeys("3", [Array("z".utf8)], ifRevision: "1", in: collection),
        ])
        #expect(outcomes == [.passed, .mismatch(current: "1"), .notFound])
        let records = try reader.scan(collection, keys(0))
        #expect(records.map(\.id) == ["1", "2"])
        #expect(records.first == PluginRecord("1", bytes: Array("one".utf8), expiresAt: 2000))
        #expect(records.first?.sequence == sequence)
        #expect(try ids(unkeyed(0)) == [])
        #expect(try ids(unkeyed(1)) == ["1", "2"])
    }

    @Test func rollsIndexesBack() throws {
        _ = try backend.write([put("1", "a"), put("2", "b"), put("3")])
        let refused = try backend.write(
            [
                put("1", "z"), .remove("2", in: collection), .setKeys("3", [[1]], ifRevision: "1", in: collection),
                put("4", "y"), .check("none", if: .present, in: collection),
            ], isAtomic: true)
        #expect(refused.last == .notFound)
        #expect(try ids(keys(0)) == ["1", "2"])
        #expect(try ids(unkeyed(0)) == ["3"])
        #expect(try ids(.sequences()) == ["1", "2", "3"])
        #expect(try reader.count(collection, keys(0, to: "b")) == 1)
    }

    // MARK: Other indexes

    @Test func changesIndexes() throws {
        _ = try backend.write([put("1", "a", "x"), put("2", "b", "y")])
        // In another order: keys go with their index.
        let swapped = try backend.open("clients", indexes: ["age", "name"], hasSequences: true)
        #expect(try ids(keys(0, from: "y"), of: swapped) == ["2"])
        #expect(try ids(keys(1, from: "b"), of: swapped) == ["2"])
        // Removed, and added again without keys; one that stays keeps them.
        let one = try backend.open("clients", indexes: ["name"], hasSequences: true)
        #expect(try ids(keys(0), of: one) == ["1", "2"])
        #expect(throws: CallError.self) { try ids(keys(1), of: one) }
        let again = try backend.open("clients", indexes: ["name", "age"], hasSequences: true)
        #expect(try ids(keys(0), of: again) == ["1", "2"])
        #expect(try ids(keys(1), of: again) == [])
        #expect(try ids(unkeyed(1), of: again) == ["1", "2"])
        _ = try backend.write([
            .setKeys("2", [Array("b".utf8), Array("y".utf8)], ifRevision: "1", in: again), .remove("1", in: again),
        ])
        #expect(try ids(keys(1), of: again) == ["2"])
        #expect(try ids(unkeyed(1), of: again) == [])
        #expect(try reader.count(again) == 1)
    }

    @Test func addsTheOrderBySequence() throws {
        let other = try backend.open("other")
        #expect(throws: CallError.self) { try ids(.sequences(), of: other) }
        for id in ["c", "a", "b", "a"] { _ = try backend.write([.put(id, "{}", in: other)]) }
        let sequenced = try backend.open("other", hasSequences: true)
        #expect(try ids(.sequences(), of: sequenced) == ["c", "b", "a"])
        _ = try backend.write([.put("c", "{}", in: sequenced)])
        #expect(try ids(.sequences(), of: sequenced) == ["b", "a", "c"])
    }

    // MARK: Sequences

    @Test func scansBySequence() throws {
        _ = try backend.write([put("c"), put("a"), put("b")])
        _ = try backend.write([put("a"), .remove("b", in: collection), put("d")])
        #expect(try ids(.sequences()) == ["c", "a", "b", "d"])
        #expect(try ids(.sequences(), isReversed: true) == ["d", "b", "a", "c"])
        #expect(try ids(.sequences(from: 2)) == ["a", "b", "d"])
        #expect(try ids(.sequences(from: 1, to: 5)) == ["c", "a"])
        #expect(try ids(.sequences(from: 7)) == [])
        #expect(try reader.scan(collection, .sequences()).map(\.sequence) == [1, 4, 5, 6])
        #expect(try reader.scan(collection, .sequences()).map(\.isRemoved) == [false, false, true, false])
        #expect(try reader.count(collection, .sequences(from: 4)) == 2)
    }

    // MARK: Expiry

    @Test func hidesWhatHasExpiredInEveryOrder() throws {
        _ = try backend.write([
            put("1", "a", expiresAt: 1000), put("2", "a", expiresAt: 1001), put("3", "a"), put("4", expiresAt: 999),
        ])
        let ranges = [PluginRange(), keys(0), unkeyed(0), unkeyed(1), .sequences()]
        let expected: [[String]] = [["2", "3"], ["2", "3"], [], ["2", "3"], ["2", "3"]]
        for (range, ids) in zip(ranges, expected) {
            #expect(try self.ids(range) == ids)
            #expect(try self.ids(range, isReversed: true) == ids.reversed())
            #expect(try self.ids(range, limit: 1) == Array(ids.prefix(1)))
            #expect(try reader.count(collection, range) == ids.count)
        }
        #expect(try reader.read(["1", "2"], in: collection).map { $0?.id } == [nil, "2"])
        backend.call.now = 998
        #expect(try reader.count(collection) == 4)
        #expect(try ids(unkeyed(0)) == ["4"])
    }

    @Test func writesWhereARecordHasExpired() throws {
        _ = try backend.write([put("1", "a", expiresAt: 1000), put("2", "b", expiresAt: 1000)])
        let outcomes = try backend.write([
            .remove("1", in: collection), .put("1", "{}", if: .present, in: collection),
            .put("1", "{}", if: .revision("1"), in: collection),
            .setKeys("1", [[1]], ifRevision: "1", in: collection), .put("1", "{}", if: .absent, in: collection),
            .put("2", "{}", in: collection),
        ])
        #expect(outcomes == [.notFound, .notFound, .notFound, .notFound, .created, .created])
        #expect(try ids(keys(0)) == [])
        #expect(try ids(unkeyed(0)) == ["1", "2"])
    }

    // MARK: Long scans

    @Test func stopsWhenInterrupted() throws {
        _ = try backend.write((0..<5000).map { put("\($0)", "\($0)", expiresAt: 1) })
        var asked = 0
        backend.call.isInterrupted = {
            asked += 1
            return asked == 2
        }
        let error = #expect(throws: CallError.self) { try ids(keys(0)) }
        #expect(error?.status == CRUDD_INTERRUPTED)
        #expect(asked == 2)
    }
}
