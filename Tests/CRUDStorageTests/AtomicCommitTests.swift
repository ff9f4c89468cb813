import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import Glibc
import Synchronization
import Testing

@testable import CRUDStorage

/// Batches that take effect whole or not at all.
@Suite struct AtomicCommitTests {
    private let test: TestBackend
    private let clients = collection("clients")

    init() throws {
        test = try Self.backend()
        try test.write(.put("a", "1", "r1"), in: clients)
    }

    private static func backend(options: String = "{}") throws -> TestBackend {
        try TestBackend.opened(capabilities: [.concurrentReads, .transactions], options: options)
    }

    /// Submits one batch and waits for it.
    private func write(
        _ changes: Change..., transformation: Appending? = nil, in place: BackendCollection? = nil,
        to other: TestBackend? = nil
    ) throws -> MutationBatch {
        let (batch, inbox) = try submit(changes, transformation: transformation, in: place, to: other)
        _ = try inbox.take()
        return batch
    }

    private func submit(
        _ changes: [Change], transformation: Appending?, in place: BackendCollection? = nil, to other: TestBackend?
    ) throws -> (MutationBatch, Inbox<WorkItem>) {
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch(isAtomic: true) { inbox.put($0) }
        for change in changes {
            batch.append(
                change, in: place ?? clients, transformation: change.kind == .put ? transformation : nil)
        }
        (other ?? test).backend.submit(.write(batch))
        return (batch, inbox)
    }

    /// Appends a plus sign to an item each time that it is called.
    private final class Appending: ItemTransformation {
        let count = Atomic(0)

        func transform(_ item: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
            count.add(1, ordering: .relaxed)
            guard item != Array("unfit".utf8) else { throw CRUDError(.unsupported, "it does not fit") }
            return TransformedItem(stored: (item ?? []) + Array("+".utf8))
        }
    }

    // MARK: Without a dry run

    @Test func mutationsTakeEffectInOrderAndInOneCall() throws {
        let batch = try write(
            .put("b", "1", "r2", if: .absent), .put("a", "2", "r3", if: .revision("r1")), .remove("b"),
            .check("a", if: .revision("r3")), .put("b", "3", "r4", if: .absent))
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["applied", "replaced", "applied", "applied", "applied"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["2@r3", "3@r4"]))
        #expect(test.plugin[.writes] == 2)
        #expect(test.plugin[.violations] == 0)
    }

    @Test(
        arguments: [
            (.put("a", if: .absent), "exists"), (.put("c", if: .present), "not found"), (.remove("c"), "not found"),
            (.put("a", if: .revision("r0")), "mismatch r1"), (.check("a", if: .revision("r0")), "mismatch r1"),
            (.check("c", if: .present), "not found"), (.put("status:6"), "failed 6"),
        ] as [(Change, String)])
    func nothingIsAppliedIfOneMutationFails(change: Change, outcome: String) throws {
        let batch = try write(.put("b"), .remove("a"), .put("a", "1", "r1"), change, .put("d"))
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["applied", "applied", "applied", outcome])
        #expect(try test.read(["a", "b", "d"], in: clients) == .records(["1@r1", nil, nil]))
        #expect(test.plugin[.writes] == 2, "only the plugin can tell")
    }

    @Test func callThatFailsIsFailureOfBatch() throws {
        let batch = try write(.put("b"), .put("call:\(CRUDD_NO_SPACE)"))
        #expect(batch.failure?.code == .noSpace)
        #expect(try test.read(["b"], in: clients) == .records([nil]))
    }

    @Test func batchIsUnsupportedWithoutTransactions() throws {
        let test = try TestBackend.opened()
        let batch = try write(.put("a"), to: test)
        #expect(batch.failure?.code == .unsupported)
        #expect(test.plugin[.writes] == 0)
    }

    // MARK: With a dry run

    /// Each transformation sees what the mutations before it leave.
    @Test func transformationsSeeEarlierMutations() throws {
        let appending = Appending()
        let batch = try write(
            .put("a", "", "r2", if: .revision("r1")), .put("a", "", "r3", if: .revision("r2")),
            .put("b", "", "r4"), .remove("b"), .put("b", "", "r5"), .put("b", "", "r6"),
            transformation: appending)
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["replaced", "replaced", "applied", "applied", "applied", "replaced"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["1++@r3", "++@r6"]))
        #expect(batch.shownItem(at: 1).elementsEqual("1++".utf8))
        #expect(test.plugin[.writes] == 2)
        #expect(appending.count.load(ordering: .relaxed) == 5)
    }

    @Test(
        arguments: [
            (.check("a", if: .absent), "mismatch r1"), (.put("c", if: .present), "not found"),
            (.remove("c"), "not found"),
            (.put("a", "", "r", if: .revision("r0")), "mismatch r1"), (.put("unfit"), "refused unsupported"),
        ] as [(Change, String)])
    func pluginIsNotCalledIfDryRunFails(change: Change, outcome: String) throws {
        try test.write(.put("unfit", "unfit"), in: clients)
        let writes = test.plugin[.writes]
        let batch = try write(.put("b"), .remove("a"), .put("a", "", "r1"), change, transformation: Appending())
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["applied", "applied", "applied", outcome])
        #expect(try test.read(["a", "b"], in: clients) == .records(["1@r1", nil]))
        #expect(test.plugin[.writes] == writes)
    }

    @Test func missingCollectionHasNoRecords() throws {
        let missing = collection("missing")
        #expect(try write(.check("a", if: .absent), in: missing).outcomeTexts == ["applied"])
        #expect(try write(.check("a", if: .present), in: missing).outcomeTexts == ["not found"])
        #expect(
            try write(.check("a", if: .absent), .remove("a"), in: missing).outcomeTexts == ["applied", "not found"])
        #expect(!missing.isOpen)
        #expect(test.plugin[.writes] == 1)
    }

    // MARK: Beside another writer

    @Test(arguments: [(1, 2), (9, 10)])
    func batchIsRetriedAfterSomebodyElsesWrite(writesOfOthers: Int, calls: Int) throws {
        let test = try Self.backend(options: #"{"meddles":\#(writesOfOthers)}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        let appending = Appending()
        let batch = try write(.put("a", "", "r2"), .put("b", "", "r3"), transformation: appending, to: test)
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["replaced", "applied"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["1+@r2", "+@r3"]))
        #expect(test.plugin[.writes] == 1 + calls)
        #expect(appending.count.load(ordering: .relaxed) == 2 * calls)
    }

    /// All records of a batch are locked in order, not only those whose items are transformed.
    @Test func batchIsReadToBeWrittenWhereSomebodyElseWasQuicker() throws {
        let test = try Self.backend(options: #"{"meddles":1}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        _ = try write(.put("b"), .put("a"), transformation: Appending(), to: test)
        #expect(test.plugin[.readsToWrite] == 1)
        #expect(test.plugin[.writes] == 1 + 2)
    }

    @Test func batchIsTriedAsLongAsItsRequestWaits() throws {
        let test = try Self.backend(options: #"{"meddles":1000000}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        let (batch, inbox) = try submit([.put("b"), .put("a")], transformation: Appending(), to: test)
        while test.plugin[.writes] < 150 { sched_yield() }
        batch.waitersHaveLeft()
        _ = try inbox.take()
        #expect(batch.failure?.code == .unavailable)
        #expect(try test.read(["b"], in: clients) == .records([nil]))
    }

    @Test func mismatchWithoutDryRunIsNotRetried() throws {
        let test = try Self.backend(options: #"{"meddles":1}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        let batch = try write(.put("b"), .put("a", if: .revision("r1")), to: test)
        #expect(batch.outcomeTexts == ["applied", "mismatch theirs 0"])
        #expect(test.plugin[.writes] == 2)
    }
}
