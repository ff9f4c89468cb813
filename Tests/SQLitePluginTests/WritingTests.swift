import CRUDPluginTesting
import CRUDTestSupport
import Testing

@Suite struct WritingTests {
    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path)
        clients = try backend.open("clients")
    }

    private func records() throws -> [PluginRecord] {
        try backend.reader().scan(clients)
    }

    /// A change of record `a`, its outcome if the record is there with revision `r0`, and its outcome if it is not.
    struct Case: CustomTestStringConvertible {
        enum Kind { case put, remove, setKeys, undefined }

        let kind: Kind
        let precondition: PluginMutation.Precondition
        let there: PluginOutcome
        let missing: PluginOutcome

        init(
            _ kind: Kind, if precondition: PluginMutation.Precondition = .none, there: PluginOutcome,
            missing: PluginOutcome
        ) {
            self.kind = kind
            self.precondition = precondition
            self.there = there
            self.missing = missing
        }

        func change(in collection: PluginCollection) -> PluginMutation {
            switch kind {
            case .put: .put("a", "new", revision: "r1", if: precondition, in: collection)
            case .remove: .remove("a", if: precondition, in: collection)
            case .setKeys: .setKeys("a", [], if: precondition, in: collection)
            case .undefined: .undefined("a", in: collection)
            }
        }

        var testDescription: String { "\(kind) if \(precondition)" }
    }

    static let cases: [Case] = [
        Case(.put, there: .replaced, missing: .created),
        Case(.put, if: .absent, there: .exists, missing: .created),
        Case(.put, if: .present, there: .replaced, missing: .notFound),
        Case(.put, if: .revision("r0"), there: .replaced, missing: .notFound),
        Case(.put, if: .revision("x"), there: .mismatch(current: "r0"), missing: .notFound),
        Case(.put, if: .revision(""), there: .mismatch(current: "r0"), missing: .notFound),
        Case(.remove, there: .removed, missing: .notFound),
        Case(.remove, if: .absent, there: .exists, missing: .notFound),
        Case(.remove, if: .present, there: .removed, missing: .notFound),
        Case(.remove, if: .revision("r0"), there: .removed, missing: .notFound),
        Case(.remove, if: .revision("R0"), there: .mismatch(current: "r0"), missing: .notFound),
        Case(.undefined, there: .unsupported, missing: .unsupported),
        Case(.setKeys, there: .unsupported, missing: .unsupported),
        Case(.setKeys, if: .revision("r0"), there: .passed, missing: .notFound),
        Case(.setKeys, if: .revision("x"), there: .mismatch(current: "r0"), missing: .notFound),
        Case(.put, if: .undefined, there: .unsupported, missing: .unsupported),
    ]

    @Test(arguments: cases, [false, true])
    func honoursPreconditions(_ test: Case, isThere: Bool) throws {
        let before = isThere ? [PluginRecord("a", "old", revision: "r0")] : []
        if isThere { _ = try backend.write([.put("a", "old", revision: "r0", in: clients)]) }
        let expected = isThere ? test.there : test.missing
        #expect(try backend.write([test.change(in: clients)]) == [expected])
        var after = before
        // A refused change touches nothing, and keys are no part of the record.
        if case .applied = expected, test.kind != .setKeys {
            after = test.kind == .put ? [PluginRecord("a", "new", revision: "r1")] : []
        }
        #expect(try records() == after)
    }

    @Test func appliesABatchInOrder() throws {
        let outcomes = try backend.write([
            .put("a", "1", revision: "r1", if: .absent, in: clients),
            .put("a", "2", revision: "r2", if: .absent, in: clients),
            .put("a", "3", revision: "r3", if: .revision("r1"), in: clients),
            .put("a", "4", revision: "r4", if: .revision("r1"), in: clients), .remove("a", in: clients),
            .remove("a", in: clients),
            .put("a", "5", revision: "r5", in: clients), .put("a", "6", revision: "r6", in: clients),
        ])
        #expect(
            outcomes == [
                .created, .exists, .replaced, .mismatch(current: "r3"), .removed, .notFound, .created, .replaced,
            ])
        #expect(try records() == [PluginRecord("a", "6", revision: "r6")])
    }

    @Test func appliesAnAtomicBatchWholeOrNotAtAll() throws {
        let others = try backend.open("others")
        _ = try backend.write([.put("a", "1", in: clients)])
        let refused = try backend.write(
            [
                .put("b", "2", in: clients), .put("c", "3", in: others), .remove("a", in: clients),
                .put("b", "4", if: .absent, in: clients), .put("d", "5", in: others),
            ], isAtomic: true)
        #expect(refused.prefix(4) == [.created, .created, .removed, .exists])
        #expect(try records() == [PluginRecord("a", "1")])
        #expect(try backend.reader().count(others) == 0)
        let applied = try backend.write([.put("b", "2", in: clients), .put("c", "3", in: others)], isAtomic: true)
        #expect(applied == [.created, .created])
        #expect(try records() == [PluginRecord("a", "1"), PluginRecord("b", "2")])
        #expect(try backend.reader().read("c", in: others)?.item == "3")
    }

    @Test(arguments: [
        ("a", PluginMutation.Precondition.revision("1"), PluginOutcome.passed), ("a", .present, .passed),
        ("z", .absent, .passed), ("b", .present, .passed), ("a", .absent, .exists),
        ("a", .revision("x"), .mismatch(current: "1")), ("z", .present, .notFound), ("z", .revision("1"), .notFound),
    ])
    func checksInAnAtomicBatch(
        id: String, precondition: PluginMutation.Precondition, outcome: PluginOutcome
    ) throws {
        _ = try backend.write([.put("a", "1", in: clients)])
        let check = PluginMutation.check(id, if: precondition, in: clients)
        #expect(try backend.write([.put("b", "2", in: clients), check], isAtomic: true) == [.created, outcome])
        #expect(try records().map(\.id) == (outcome == .passed ? ["a", "b"] : ["a"]))
        #expect(try backend.write([check]) == [.unsupported])
    }

    @Test func takesAnEmptyBatch() throws {
        #expect(try backend.write([]).isEmpty)
    }

    @Test func storesAnyIDAsItIs() throws {
        let ids = OddNames.all + [String(repeating: "😀", count: 128)]
        let records = ids.enumerated().map { PluginRecord($1, "\($0)", revision: "r\($0)") }
        _ = try backend.write(records.map { .put($0, in: clients) })
        let reader = try backend.reader()
        #expect(try reader.read(ids, in: clients) == records)
        #expect(try reader.count(clients) == ids.count)
        #expect(try backend.write(ids.map { .remove($0, in: clients) }) == ids.map { _ in .removed })
    }

    @Test func storesLongItems() throws {
        let text = String(repeating: "é😀 ", count: 700_000)
        _ = try backend.write([.put("a", text, in: clients), .put("b", "1", in: clients)])
        #expect(try backend.reader().read("a", in: clients)?.item == text)
        let boxes = try backend.open("boxes", format: "plist")
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        _ = try backend.write([.put("a", bytes: bytes, in: boxes)])
        #expect(try backend.reader().read("a", in: boxes)?.bytes == bytes)
    }

    @Test func keepsARevisionOf64Bytes() throws {
        let revision = String(repeating: "r", count: 64)
        _ = try backend.write([.put("a", "1", revision: revision, in: clients)])
        #expect(
            try backend.write([.put("a", "2", revision: "x", if: .revision("y"), in: clients)])
                == [.mismatch(current: revision)])
    }

    @Test func failsOneChangeAloneThatAConstraintForbids() throws {
        try Inspector(path).execute("CREATE UNIQUE INDEX by_mail ON clients (item ->> 'mail')")
        let outcomes = try backend.write(
            [("a", "x"), ("b", "x"), ("c", "y")].map { .put($0, #"{"mail":"\#($1)"}"#, in: clients) })
        #expect(outcomes == [.created, .unsupported, .created])
        #expect(try records().map(\.id) == ["a", "c"])
    }
}
