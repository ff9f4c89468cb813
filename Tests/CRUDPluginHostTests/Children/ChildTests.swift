import CRUDPluginABI
import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// All calls of the contract over a child, which runs the example in Python.
@Suite struct ChildTests {
    typealias Change = TestChild.Change
    typealias Range = TestChild.Range

    private let test: TestChild

    init() throws { test = try TestChild() }

    @Test func whatItSaysOfItself() throws {
        #expect(test.opened.capabilities == [.durable, .transactions, .sequences, .expiry])
        #expect(test.child.capabilities == test.opened.capabilities)
        #expect(!test.child.canSearch && test.child.makeReadChannel() == nil)
        #expect(test.opened.lastSequence == 0 && test.opened.readers == 1)
        #expect(test.child.loss == nil && !test.child.hasServed)
    }

    @Test func records() throws {
        let clients = try test.open()
        let odd = "'; DROP TABLE \"records\" 😀"
        let outcomes = try test.write(
            [
                Change(id: "a", item: "{\"a\": 1.0}\n"), Change(id: odd, item: "\0\u{FEFF}"),
                Change(id: "a", item: "2"),
                Change(id: "b", item: nil), Change(id: "a", item: "3", precondition: CRUDD_IF_ABSENT),
                Change(id: "a", item: "4", revision: "r4", precondition: CRUDD_IF_REVISION, expected: "no"),
                Change(id: "a", item: "5", revision: "r5", precondition: CRUDD_IF_REVISION, expected: "r"),
                Change(id: "c", item: "", precondition: CRUDD_IF_PRESENT),
            ], in: clients)
        #expect(
            outcomes == ["ok", "ok", "ok replaced", "not_found", "exists", "mismatchr", "ok replaced", "not_found"])
        #expect(
            try test.read(["x", "a", odd, "a"], in: clients).sorted() == [
                "1 a=5@r5", "2 \(odd)=\0\u{FEFF}@r", "3 a=5@r5",
            ])
        #expect(try test.read([], in: clients) == [])
        #expect(test.child.hasServed)
    }

    @Test func atomicBatches() throws {
        let clients = try test.open()
        let changes = [Change(id: "a", item: "1"), Change(id: "b", item: nil), Change(id: "c", item: "1")]
        #expect(try test.write(changes, in: clients, isAtomic: true)[1] == "not_found")
        #expect(try test.count(in: clients) == 0)
        #expect(try test.write([changes[0], changes[2]], in: clients, isAtomic: true) == ["ok", "ok"])
        #expect(try test.count(in: clients) == 2)
    }

    /// A batch that is larger than one call takes several.
    @Test func largeBatches() throws {
        let clients = try test.open()
        let item = String(repeating: "x", count: 900_000)
        let changes = (0..<12).map { Change(id: "\($0)", item: item) }
        #expect(try test.write(changes, in: clients) == Array(repeating: "ok", count: 12))
        #expect(try test.read(changes.map(\.id), in: clients).map(\.utf8.count).allSatisfy { $0 > 900_000 })
    }

    @Test func scansByID() throws {
        let clients = try test.open()
        // More than one call asks for.
        let ids = (0..<2500).map { "k\(10_000 + $0)" }
        _ = try test.write(ids.map { Change(id: $0, item: "{}") }, in: clients)
        func expected(_ ids: some Collection<String>) -> [String] { ids.enumerated().map { "\($0) \($1)={}@r" } }
        #expect(try test.scan(Range(), in: clients) == expected(ids))
        #expect(try test.scan(Range(), flags: CRUDD_SCAN_REVERSE, in: clients) == expected(ids.reversed()))
        #expect(try test.scan(Range(), after: ids[1], limit: 1200, in: clients) == expected(ids[2..<1202]))
        #expect(
            try test.scan(Range(), after: ids[7], flags: CRUDD_SCAN_REVERSE, in: clients)
                == expected(ids[..<7].reversed()))
        let some = Range(lower: ids[3], upper: ids[2000])
        #expect(try test.scan(some, in: clients) == expected(ids[3..<2000]))
        #expect(try test.scan(some, flags: CRUDD_SCAN_REVERSE, in: clients) == expected(ids[3..<2000].reversed()))
        #expect(
            try test.scan(some, limit: 1, flags: CRUDD_SCAN_WITHOUT_ITEMS, in: clients) == ["0 \(ids[3])=@r"])
        #expect(try test.scan(Range(), maximum: 1500, in: clients).count == 1500)
        #expect(try test.count(some, in: clients) == 1997)
        #expect(try test.count(some, limit: 100, in: clients) == 100)
    }

    @Test func scansBySequence() throws {
        let clients = try test.open(flags: CRUDD_OPEN_CREATE | CRUDD_OPEN_SEQUENCES)
        let changes = (1...2100).map { Change(id: "\(3000 - $0)", item: "1", sequence: UInt64($0)) }
        _ = try test.write([Change(id: "none", item: "1")] + changes, in: clients)
        let ids = changes.map(\.id)
        func expected(_ ids: some Collection<String>) -> [String] { ids.enumerated().map { "\($0) \($1)=1@r" } }
        let all = Range(order: CRUDD_BY_SEQUENCE)
        #expect(try test.scan(all, in: clients) == expected(ids))
        #expect(try test.scan(all, flags: CRUDD_SCAN_REVERSE, in: clients) == expected(ids.reversed()))
        let some = Range(order: CRUDD_BY_SEQUENCE, sequences: (10, 20))
        #expect(try test.scan(some, in: clients) == expected(ids[9..<19]))
        #expect(try test.scan(some, limit: 2, flags: CRUDD_SCAN_REVERSE, in: clients) == expected([ids[18], ids[17]]))
    }

    @Test func theHighestSequenceNumberIsKept() throws {
        let clients = try test.open()
        _ = try test.write(
            [Change(id: "a", item: "1", sequence: 41), Change(id: "b", item: "1", sequence: 42)], in: clients)
        _ = try test.write([Change(id: "b", item: nil, sequence: 43)], in: clients)
        #expect(try TestChild(in: test.directory).opened.lastSequence == 43)
    }

    @Test func recordsExpire() throws {
        let clients = try test.open()
        _ = try test.write(
            [Change(id: "a", item: "1", expiresAt: 1000), Change(id: "b", item: "1")], in: clients, now: 1)
        #expect(try test.read(["a"], in: clients, now: 999) == ["0 a=1@r"])
        #expect(try test.read(["a"], in: clients, now: 1000) == [])
        #expect(try test.scan(Range(), in: clients, now: 1000) == ["0 b=1@r"])
        #expect(try test.count(in: clients, now: 1000) == 1)
        #expect(try test.write([Change(id: "a", item: nil)], in: clients, now: 1000) == ["not_found"])
        let again = Change(id: "a", item: "2", precondition: CRUDD_IF_ABSENT)
        #expect(try test.write([again], in: clients, now: 1000) == ["ok"])
    }

    @Test func collections() throws {
        let failure = try #require(throws: PluginFailure.self) { try test.open("a'b", flags: 0) }
        #expect(failure.status == CRUDD_NOT_FOUND)
        _ = try test.open("a'b")
        _ = try test.open("😀")
        #expect(try test.collections().sorted() == ["a'b", "😀"])
        try test.drop("a'b")
        #expect(try test.collections() == ["😀"])
        #expect(try #require(throws: PluginFailure.self) { try test.drop("a'b") }.status == CRUDD_NOT_FOUND)
    }

    /// Whoever observes commits knows the collection by it.
    @Test func aCollectionIsTheSameObjectHoweverOftenItIsOpened() throws {
        let clients = try test.open()
        #expect(try test.open() == clients)
        #expect(try test.open("others") != clients)
        #expect(try test.write([Change(id: "a", item: "1")], in: test.open()) == ["ok"])
        #expect(try test.read(["a"], in: clients) == ["0 a=1@r"])
    }

    /// The protocol has no scans by key for a program that does not declare them; it says so.
    @Test func whatItDoesNotDo() throws {
        let clients = try test.open()
        let failure = try #require(throws: PluginFailure.self) {
            try test.scan(Range(order: CRUDD_BY_KEY), in: clients)
        }
        #expect(failure.status == CRUDD_UNSUPPORTED && failure.message.contains("indexes"))
        let context = CallContext()
        for _ in 0..<2 {
            ChildTable.table.pointee.idle(test.opened.storage, context.begin())
            #expect(ChildTable.table.pointee.data_version(test.opened.storage) == 0)
        }
        #expect(!test.child.supports(.idle) && !test.child.supports(.version))
        #expect(test.child.loss == nil)
    }

    @Test func aRecordThatFitsNoFrame() throws {
        let clients = try test.open()
        let item = String(repeating: "x", count: 4 << 20)
        _ = try test.write([Change(id: "a", item: item), Change(id: "b", item: "1")], in: clients)
        let failure = try #require(throws: PluginFailure.self) { try test.read(["a", "b"], in: clients) }
        #expect(failure.status == CRUDD_CORRUPT)
        #expect(try test.read(["b"], in: clients) == ["0 b=1@r"])
    }
}
