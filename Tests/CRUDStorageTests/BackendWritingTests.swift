import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Mutations on their way to the plugin, and their outcomes.
@Suite struct BackendWritingTests {
    @Test func mutationsTakeEffectInOrder() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        let batch = try test.write(
            .put("a", "1", "r1", if: .absent), .put("a", "2", "r2", if: .absent), .put("a", "3", "r3", if: .present),
            .put("a", "4", "r4", if: .revision("r1")), .put("a", "5", "r5", if: .revision("r3")), .put("a", "6", "r6"),
            .remove("a", if: .revision("r5")), .remove("a", if: .revision("r6")), .remove("a"),
            .put("a", "7", "r7", if: .present), .put("a", "8", "r8", if: .revision("r6")), .put("", "", "r9"),
            in: clients)
        #expect(batch.failure == nil)
        #expect(
            batch.outcomeTexts == [
                "applied", "exists", "replaced", "mismatch r3", "replaced", "replaced", "mismatch r6", "applied",
                "not found", "not found", "not found", "applied",
            ])
        #expect(test.plugin[.writes] == 1)
        #expect(try test.read(["a", ""], in: clients) == .records([nil, "@r9"]))
    }

    /// What queues up while the plugin is busy becomes one call.
    @Test func queuedBatchesAreOneCall() throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("first")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let batches = (0..<50).map { test.submit([.put("\($0)"), .remove("none")], in: clients, to: inbox) }
        test.plugin.pass(2)
        for _ in 0..<51 { _ = try inbox.take() }
        #expect(test.plugin[.writes] == 2)
        #expect(test.plugin[.mutations] == 101)
        #expect(batches.allSatisfy { $0.outcomeTexts == ["applied", "not found"] })
    }

    @Test func readIsExecutedBetweenWritesAroundIt() throws {
        let test = try TestBackend.opened(capabilities: [], options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("a", "1")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let batch = ReadBatch { inbox.put($0) }
        batch.append(Read(.records([batch.store(Array("a".utf8).span)]), in: clients))
        _ = test.submit([.put("a", "2")], in: clients, to: inbox)
        test.backend.submit(.read(.batch(batch)))
        _ = test.submit([.put("a", "3")], in: clients, to: inbox)
        test.plugin.pass(3)
        for _ in 0..<4 { _ = try inbox.take() }
        #expect(try FoundTexts(batch) == .records(["2@r"]))
        #expect(test.plugin[.writes] == 3)
    }

    // MARK: Failures

    /// A collection that cannot be opened is asked for once, whatever a batch holds for it.
    @Test func collectionThatCannotBeOpenedFailsOncePerBatch() throws {
        let test = try TestBackend.opened()
        let clients = collection("open:\(CRUDD_NO_SPACE)")
        let changes = (0..<500).map { Change.put("\($0)") }
        let written = try test.backend.write(changes, in: clients)
        #expect(written.outcomeTexts == Array(repeating: "refused no_space", count: 500))
        #expect(test.plugin[.collectionsOpened] == 1)
    }

    /// It does not exist, which is no error for anything but what would create it.
    @Test func collectionThatCannotBeCreatedFailsOncePerBatchAndIsEmpty() throws {
        let test = try TestBackend.opened()
        let clients = collection("create:\(CRUDD_NO_SPACE)")
        let written = try test.backend.write((0..<500).map { .put("\($0)") } + [.remove("0")], in: clients)
        #expect(written.outcomeTexts == Array(repeating: "refused no_space", count: 500) + ["not found"])
        // As it is, and to create it; and as it is for the removal.
        #expect(test.plugin[.collectionsOpened] == 3)
        #expect(try test.read(["0"], in: clients) == .records([nil]))
    }

    @Test(arguments: [
        CRUDD_UNAVAILABLE, CRUDD_OUTCOME_UNKNOWN, CRUDD_NO_SPACE, CRUDD_CORRUPT, CRUDD_UNSUPPORTED, CRUDD_INTERNAL, 77,
    ])
    func oneMutationFailsAlone(status: Int) throws {
        let test = try TestBackend.opened()
        let batch = try test.write(.put("a"), .put("status:\(status)"), .put("b"), in: collection())
        #expect(batch.outcomeTexts == ["applied", "failed \(status)", "applied"])
    }

    @Test(
        arguments: [
            (CRUDD_UNAVAILABLE, .unavailable), (CRUDD_OUTCOME_UNKNOWN, .outcomeUnknown), (CRUDD_NO_SPACE, .noSpace),
            (CRUDD_CORRUPT, .corrupt), (CRUDD_UNSUPPORTED, .unsupported), (CRUDD_INTERNAL, .internalError),
            (CRUDD_INVALID_OPTIONS, .internalError), (CRUDD_NOT_FOUND, .internalError),
            (CRUDD_INTERRUPTED, .unavailable), (77, .internalError), (-1, .internalError),
        ] as [(Int, CRUDError.Code)])
    func callFailsForAllThatMayBeTheCause(status: Int, code: CRUDError.Code) throws {
        let test = try TestBackend.opened()
        let clients = collection()
        let batch = try test.write(.put("a"), .put("call:\(status)"), in: clients)
        let isTriedAlone = [.corrupt, .unsupported, .internalError].contains(code)
        #expect(batch.outcomeTexts == [isTriedAlone ? "applied" : "refused \(code.name)", "refused \(code.name)"])
        guard case .refused(let failure) = batch.outcomes[1] else { throw Failure("it is not refused") }
        #expect(!failure.message.contains("private"), "a plugin's reasons are for the log")
        #expect(test.backend.status.lastError == "private reason \(status)")
        _ = try test.log.wait(for: "error: backend main: write: private reason \(status)")
        let isApplied = isTriedAlone || status == CRUDD_OUTCOME_UNKNOWN
        #expect(try test.read(["a"], in: clients) == .records([isApplied ? "1@r" : nil]))
        #expect(try test.write(.put("b"), in: clients).outcomeTexts == ["applied"])
    }

    /// A call fails as a whole. Where one mutation alone may be the cause, the others are applied without it, whether
    /// they are of other requests, other batches or its own.
    @Test(arguments: [
        (CRUDD_CORRUPT, "corrupt", 5), (CRUDD_INTERNAL, "internal_error", 5), (CRUDD_NO_SPACE, "no_space", 1),
    ])
    func oneMutationDoesNotFailTheOthers(status: Int, name: String, calls: Int) throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("first")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let batches = [["a"], ["b", "call:\(status)"], ["c"]].map { ids in
            test.submit(ids.map { .put($0) }, in: clients, to: inbox)
        }
        test.plugin.pass(9)
        for _ in 0..<4 { _ = try inbox.take() }
        #expect(test.plugin[.writes] == 1 + calls)
        let other = calls > 1 ? "applied" : "refused \(name)"
        #expect(batches.map(\.outcomeTexts) == [[other], [other, "refused \(name)"], [other]])
        let item = calls > 1 ? "1@r" : nil
        #expect(try test.read(["a", "b", "c"], in: clients) == .records([item, item, item]))
    }

    /// A write whose outcome is unknown may have been applied; a read after the reply must not be shown an older
    /// snapshot.
    @Test func snapshotIsStaleAfterUnknownOutcome() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        let reader = try #require(test.backend.reader(forLoop: 0))
        let visitor = TextVisitor()
        try reader.read(Array("a".utf8).span, in: clients, into: visitor)
        let batch = try test.write(.put("a", "2"), .put("call:\(CRUDD_OUTCOME_UNKNOWN)"), in: clients)
        #expect(batch.outcomeTexts == ["refused outcome_unknown", "refused outcome_unknown"])
        try reader.read(Array("a".utf8).span, in: clients, into: visitor)
        reader.releaseSnapshot()
        #expect(visitor.texts == ["1@r", "2@r"])
    }

    // MARK: Collections

    @Test func onlyMutationThatCreatesARecordCreatesItsCollection() throws {
        let asked = try Inbox<[UInt8]>()
        let test = try TestBackend.opened(admission: { collection, _, _ in
            asked.put(collection.name)
            return nil
        })
        let clients = collection("clients")
        let before = try test.write(
            .remove("a"), .put("a", if: .present), .put("a", if: .revision("r")), in: clients)
        #expect(before.outcomeTexts == ["not found", "not found", "not found"])
        #expect(try test.read(["a"], in: clients) == .records([nil]))
        #expect(!clients.isOpen)
        #expect(test.plugin[.writes] == 0, "the plugin need not be asked for what cannot exist")
        #expect(asked.count == 0)

        #expect(
            try test.write(.put("a", if: .present), .put("a", if: .absent), in: clients).outcomeTexts
                == ["not found", "applied"])
        #expect(clients.isOpen)
        try test.write(.put("b"), in: clients)
        #expect(asked.count == 1)
        #expect(try asked.take() == clients.name)
        #expect(test.plugin[.creations] == 1)
    }

    @Test func collectionThatCannotBeOpenedFailsItsOwnMutationsAlone() throws {
        let test = try TestBackend.opened(admission: { collection, _, _ in
            collection.name == Array("full".utf8) ? CRUDError(.limitExceeded, "no more") : nil
        })
        let (full, broken, late, fine) = (
            collection("full"), collection("open:\(CRUDD_CORRUPT)"), collection("create:\(CRUDD_NO_SPACE)"),
            collection("fine")
        )
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch { inbox.put($0) }
        for place in [full, fine, broken, late, fine] { batch.append(.put("a"), in: place) }
        test.backend.submit(.write(batch))
        _ = try inbox.take()
        #expect(batch.failure == nil)
        #expect(
            batch.outcomeTexts == [
                "refused limit_exceeded", "applied", "refused corrupt", "refused no_space", "replaced",
            ])
        #expect(try test.read(["a"], in: broken) == .failed(.corrupt))
        #expect(try test.read(["a"], in: full) == .records([nil]))
    }

    // MARK: Withdrawal

    @Test func withdrawnBatchIsNotExecuted() throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        let first = test.submit([.put("a")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let second = test.submit([.put("b")], in: clients, to: inbox)
        let third = test.submit([.put("c")], in: clients, to: inbox)
        #expect(!first.expire(), "the plugin has it")
        #expect(second.expire())
        test.plugin.pass(2)
        #expect(try inbox.take() === first)
        #expect(try inbox.take() === third)
        #expect(try test.read(["a", "b", "c"], in: clients) == .records(["1@r", nil, "1@r"]))
        #expect(inbox.count == 0)
    }
}
