import CRUDPluginABI
import CRUDTestSupport
import Testing

@Suite struct WritingTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let store: Store
    private let clients: OpaquePointer

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        store = try Store(path: path)
        clients = try store.collection("clients")
    }

    private func records() throws -> [Record] {
        try store.reader().scan(clients)
    }

    /// A change of record `a`, its outcome if the record is there with revision `r0`, and its outcome if it is not.
    struct Case: CustomTestStringConvertible {
        let change: Change
        let there: Outcome
        let missing: Outcome

        var testDescription: String { "kind \(change.kind) if \(change.precondition)" }
    }

    static let cases: [Case] = [
        Case(change: .put("a", "new", "r1"), there: .replaced, missing: .created),
        Case(change: .put("a", "new", "r1", CRUDD_IF_ABSENT), there: .exists, missing: .created),
        Case(change: .put("a", "new", "r1", CRUDD_IF_PRESENT), there: .replaced, missing: .notFound),
        Case(change: .put("a", "new", "r1", CRUDD_IF_REVISION, expected: "r0"), there: .replaced, missing: .notFound),
        Case(
            change: .put("a", "new", "r1", CRUDD_IF_REVISION, expected: "x"), there: .mismatch("r0"), missing: .notFound
        ),
        Case(
            change: .put("a", "new", "r1", CRUDD_IF_REVISION, expected: ""), there: .mismatch("r0"),
            missing: .notFound),
        Case(change: .remove("a"), there: .removed, missing: .notFound),
        Case(change: .remove("a", CRUDD_IF_ABSENT), there: .exists, missing: .notFound),
        Case(change: .remove("a", CRUDD_IF_PRESENT), there: .removed, missing: .notFound),
        Case(change: .remove("a", CRUDD_IF_REVISION, expected: "r0"), there: .removed, missing: .notFound),
        Case(change: .remove("a", CRUDD_IF_REVISION, expected: "R0"), there: .mismatch("r0"), missing: .notFound),
        Case(change: Change(kind: 9, id: "a"), there: .unsupported, missing: .unsupported),
        Case(change: Change(kind: CRUDD_SET_KEYS, id: "a"), there: .unsupported, missing: .unsupported),
        Case(change: .setKeys("a", [], ifRevision: "r0"), there: .keyed, missing: .notFound),
        Case(change: .setKeys("a", [], ifRevision: "x"), there: .mismatch("r0"), missing: .notFound),
        Case(
            change: Change(id: "a", precondition: 9), there: .unsupported,
            missing: .unsupported),
    ]

    @Test(arguments: cases, [false, true])
    func honoursPreconditions(_ test: Case, isThere: Bool) throws {
        let before = isThere ? [Record(0, "a", "old", "r0")] : []
        if isThere { try store.write([.put("a", "old", "r0")], to: clients) }
        let expected = isThere ? test.there : test.missing
        #expect(try store.write([test.change], to: clients) == [expected])
        if expected.status != CRUDD_OK {
            #expect(try records() == before, "a refused change touches nothing")
        } else {
            let after = [CRUDD_PUT: [Record(0, "a", "new", "r1")], CRUDD_REMOVE: [], CRUDD_SET_KEYS: before]
            #expect(try records() == after[test.change.kind])
        }
    }

    @Test func appliesABatchInOrder() throws {
        let outcomes = try store.write(
            [
                .put("a", "1", "r1", CRUDD_IF_ABSENT), .put("a", "2", "r2", CRUDD_IF_ABSENT),
                .put("a", "3", "r3", CRUDD_IF_REVISION, expected: "r1"),
                .put("a", "4", "r4", CRUDD_IF_REVISION, expected: "r1"), .remove("a"), .remove("a"),
                .put("a", "5", "r5"),
                .put("a", "6", "r6"),
            ], to: clients)
        #expect(
            outcomes == [.created, .exists, .replaced, .mismatch("r3"), .removed, .notFound, .created, .replaced])
        #expect(try records() == [Record(0, "a", "6", "r6")])
    }

    @Test func appliesAnAtomicBatchWholeOrNotAtAll() throws {
        let others = try store.collection("others")
        try store.write([.put("a", "1")], to: clients)
        let refused = try store.write(
            [
                (.put("b", "2"), clients), (.put("c", "3"), others), (.remove("a"), clients),
                (.put("b", "4", "r", CRUDD_IF_ABSENT), clients), (.put("d", "5"), others),
            ], isAtomic: true)
        #expect(refused[3] == .exists)
        #expect(refused.firstIndex { $0.status != CRUDD_OK } == 3)
        #expect(try records() == [Record(0, "a", "1")])
        #expect(try store.reader().count(others) == 0)
        let applied = try store.write([(.put("b", "2"), clients), (.put("c", "3"), others)], isAtomic: true)
        #expect(applied == [.created, .created])
        #expect(try records() == [Record(0, "a", "1"), Record(1, "b", "2")])
        #expect(try store.reader().item("c", in: others) == "3")
    }

    @Test(arguments: [
        ("a", CRUDD_IF_REVISION, "r", Outcome.created), ("a", CRUDD_IF_PRESENT, "", .created),
        ("z", CRUDD_IF_ABSENT, "", .created), ("b", CRUDD_IF_PRESENT, "", .created),
        ("a", CRUDD_IF_ABSENT, "", .exists), ("a", CRUDD_IF_REVISION, "x", .mismatch("r")),
        ("z", CRUDD_IF_PRESENT, "", .notFound), ("z", CRUDD_IF_REVISION, "r", .notFound),
    ])
    func checksInAnAtomicBatch(id: String, precondition: Int, expected: String, outcome: Outcome) throws {
        try store.write([.put("a", "1")], to: clients)
        let check = Change(kind: CRUDD_CHECK, id: id, precondition: precondition, expected: expected)
        #expect(try store.write([.put("b", "2"), check], to: clients, isAtomic: true) == [.created, outcome])
        #expect(try records().map(\.idText) == (outcome == .created ? ["a", "b"] : ["a"]))
        #expect(try store.write([check], to: clients) == [.unsupported])
    }

    @Test func takesAnEmptyBatch() throws {
        #expect(try store.write([], to: clients).isEmpty)
    }

    @Test func storesAnyIDAsItIs() throws {
        let ids = OddNames.all + [String(repeating: "😀", count: 128)]
        try store.write(ids.enumerated().map { .put($0.element, "\($0.offset)", "r\($0.offset)") }, to: clients)
        let reader = try store.reader()
        #expect(try reader.read(ids, in: clients) == ids.enumerated().map { Record($0, $1, "\($0)", "r\($0)") })
        #expect(try reader.count(clients) == UInt64(ids.count))
        #expect(try store.write(ids.map { .remove($0) }, to: clients) == ids.map { _ in .removed })
    }

    @Test func storesLongItems() throws {
        let text = String(repeating: "é😀 ", count: 700_000)
        try store.write([.put("a", text), .put("b", "1")], to: clients)
        #expect(try store.reader().item("a", in: clients) == text)
        let boxes = try store.collection("boxes", format: "plist")
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try store.write([Change(id: "a", item: bytes, revision: "r")], to: boxes)
        #expect(try store.reader().read(["a"], in: boxes).first?.item == bytes)
    }

    @Test func keepsARevisionOf64Bytes() throws {
        let revision = String(repeating: "r", count: 64)
        try store.write([.put("a", "1", revision)], to: clients)
        #expect(
            try store.write([.put("a", "2", "x", CRUDD_IF_REVISION, expected: "y")], to: clients)
                == [.mismatch(revision)])
    }

    @Test func failsOneChangeAloneThatAConstraintForbids() throws {
        try Inspector(path).execute("CREATE UNIQUE INDEX by_mail ON clients (item ->> 'mail')")
        let changes: [Change] = [
            .put("a", #"{"mail":"x"}"#), .put("b", #"{"mail":"x"}"#), .put("c", #"{"mail":"y"}"#),
        ]
        #expect(try store.write(changes, to: clients) == [.created, .unsupported, .created])
        #expect(try records().map(\.idText) == ["a", "c"])
    }
}
