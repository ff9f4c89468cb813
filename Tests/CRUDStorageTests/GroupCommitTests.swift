import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// Mutations that depend on the current record, among others in one call of the plugin.
@Suite struct GroupCommitTests {
    private let test: TestBackend
    private let clients = collection("clients")

    init() throws {
        test = try TestBackend.opened()
        try test.write(.put("a", "1", "r1"), in: clients)
    }

    /// Appends a text to an item.
    private final class Appending: ItemTransformation {
        private let text: String

        init(_ text: String) {
            self.text = text
        }

        func transform(_ item: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
            guard text != "refused" else { throw CRUDError(.limitExceeded, "it would be too long") }
            let item = (item ?? []) + Array(text.utf8)
            return TransformedItem(stored: item, shown: Array("<".utf8) + item)
        }
    }

    /// Submits one batch and waits for it.
    private func write(_ changes: (Change, Appending?)..., to other: TestBackend? = nil) throws -> MutationBatch {
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch { inbox.put($0) }
        for (change, transformation) in changes { batch.append(change, in: clients, transformation: transformation) }
        (other ?? test).backend.submit(.write(batch))
        _ = try inbox.take()
        return batch
    }

    @Test func transformationIsAppliedToTheCurrentItem() throws {
        let batch = try write(
            (.put("a", "", "r2"), Appending("2")), (.put("b", "", "r3"), Appending("3")),
            (.put("c", "", "r4", if: .present), Appending("4")))
        #expect(batch.outcomeTexts == ["replaced", "applied", "not found"])
        #expect(batch.shownItem(at: 0).elementsEqual("<12".utf8))
        #expect(batch.shownItem(at: 1).elementsEqual("<3".utf8))
        #expect(try test.read(["a", "b", "c"], in: clients) == .records(["12@r2", "3@r3", nil]))
        #expect(test.plugin[.writes] == 2)
    }

    /// A transformation is written on condition that the record is unchanged, so that what came before must be there.
    @Test func otherMutationsOfOneRecordAreInSeveralCommits() throws {
        let batch = try write(
            (.put("a", "x", "r2"), nil), (.put("b"), nil), (.put("a", "", "r3"), Appending("y")),
            (.put("a", "", "r4"), Appending("z")), (.remove("b"), nil))
        #expect(batch.outcomeTexts == ["replaced", "applied", "replaced", "replaced", "applied"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["xyz@r4", nil]))
        #expect(test.plugin[.writes] == 1 + 2)
    }

    // MARK: Several transformations of one record

    @Test func transformationsOfOneRecordAreOneCommit() throws {
        let batch = try write(
            (.put("a", "", "r2"), Appending("x")), (.put("b", "", "r3"), Appending("y")),
            (.put("a", "", "r4"), Appending("z")), (.put("b", "", "r5", if: .revision("r3")), Appending("w")))
        #expect(batch.outcomeTexts == ["replaced", "applied", "replaced", "replaced"])
        #expect((0..<4).map { Array(batch.shownItem(at: $0)) } == ["<1x", "<y", "<1xz", "<yw"].map { Array($0.utf8) })
        #expect(try test.read(["a", "b"], in: clients) == .records(["1xz@r4", "yw@r5"]))
        #expect(test.plugin[.writes] == 2)
    }

    /// What is refused because of an item that has been made, but not written, is refused when that is written.
    @Test func refusalsAmongTransformationsOfOneRecordComeAfterTheWrite() throws {
        let batch = try write(
            (.put("a", "", "r2"), Appending("x")), (.put("a", "", "r3", if: .revision("r1")), Appending("y")),
            (.put("a", "", "r4"), Appending("refused")), (.put("a", "", "r5"), Appending("z")))
        #expect(batch.outcomeTexts == ["replaced", "mismatch r2", "refused limit_exceeded", "replaced"])
        #expect(try test.read(["a"], in: clients) == .records(["1xz@r5"]))
        #expect(test.plugin[.writes] == 1 + 2)
    }

    /// `exists` would tell of a record that was never stored.
    @Test func nothingIsRefusedBecauseOfAnItemThatWasNotWritten() throws {
        let id = "status:\(CRUDD_NO_SPACE)"
        let batch = try write(
            (.put(id, "", "r2"), Appending("x")), (.put(id, "", "r3", if: .absent), Appending("y")))
        #expect(batch.outcomeTexts == ["failed \(CRUDD_NO_SPACE)", "failed \(CRUDD_NO_SPACE)"])
    }

    @Test(arguments: [1, 9])
    func transformationsAreRetriedInTheirOrderAfterAnotherProgramsWrite(writesOfOthers: Int) throws {
        let test = try TestBackend.opened(options: #"{"meddles":\#(writesOfOthers)}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        let batch = try write(
            (.put("a", "", "r2"), Appending("x")), (.put("b"), nil), (.put("a", "", "r3"), Appending("y")),
            (.put("a", "", "r4"), Appending("z")), to: test)
        #expect(batch.outcomeTexts == ["replaced", "applied", "replaced", "replaced"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["1xyz@r4", "1@r"]))
        #expect(test.plugin[.writes] == 1 + writesOfOthers + 1)
    }

    /// From the second attempt on the plugin is asked to lock what it reads.
    @Test func recordsAreReadToBeWrittenWhereAnotherProgramWasQuicker() throws {
        let test = try TestBackend.opened(options: #"{"meddles":2}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        _ = try write((.put("a", "", "r2"), Appending("x")), (.put("b", "", "r3"), Appending("y")), to: test)
        #expect(test.plugin[.readsToWrite] == 2)
        #expect(try test.read(["a", "b"], in: clients) == .records(["1x@r2", "y@r3"]))
        _ = try write((.put("a", "", "r4"), Appending("z")), to: test)
        #expect(test.plugin[.readsToWrite] == 2)
    }

    /// There are as many attempts as there is time for while a request waits.
    @Test func transformationsAreTriedAsLongAsRequestsWait() throws {
        let test = try TestBackend.opened(options: #"{"meddles":1000000}"#)
        try test.write(.put("a", "1", "r1"), in: clients)
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch { inbox.put($0) }
        batch.append(.put("a", "", "r2"), in: clients, transformation: Appending("x"))
        batch.append(.put("a", "", "r3"), in: clients, transformation: Appending("y"))
        test.backend.submit(.write(batch))
        while test.plugin[.writes] < 150 { sched_yield() }
        batch.waitersHaveLeft()
        _ = try inbox.take()
        #expect(batch.outcomeTexts == ["refused unavailable", "refused unavailable"])
    }

    @Test func preconditionIsDecidedOnTheCurrentRecord() throws {
        let batch = try write(
            (.put("a", "", "r2", if: .revision("r0")), Appending("2")),
            (.put("a", "", "r2", if: .absent), Appending("2")),
            (.put("a", "", "r2", if: .revision("r1")), Appending("2")))
        #expect(batch.outcomeTexts == ["mismatch r1", "exists", "replaced"])
        #expect(try test.read(["a"], in: clients) == .records(["12@r2"]))
        #expect(test.plugin[.writes] == 2)
    }

    @Test func refusedTransformationFailsAlone() throws {
        let batch = try write(
            (.put("b"), nil), (.put("a", "", "r2"), Appending("refused")), (.put("c", "", "r3"), Appending("3")))
        #expect(batch.failure == nil)
        #expect(batch.outcomeTexts == ["applied", "refused limit_exceeded", "applied"])
        #expect(try test.read(["a", "b", "c"], in: clients) == .records(["1@r1", "1@r", "3@r3"]))
    }

    @Test func recordThatCannotBeReadFailsAlone() throws {
        let batch = try write((.put("b"), nil), (.put("call:\(CRUDD_CORRUPT)", "", "r2"), Appending("2")))
        #expect(batch.outcomeTexts == ["applied", "refused corrupt"])
    }

    /// The plugin knows checks in atomic writes only.
    @Test func checkIsDecidedWithoutThePlugin() throws {
        let batch = try write(
            (.check("a", if: .revision("r1")), nil), (.check("a", if: .revision("r0")), nil),
            (.check("a", if: .absent), nil), (.check("b", if: .absent), nil), (.check("b", if: .present), nil))
        #expect(batch.outcomeTexts == ["applied", "mismatch r1", "mismatch r1", "applied", "not found"])
        #expect(test.plugin[.writes] == 1)
        #expect(test.plugin[.violations] == 0)
    }

    @Test func checkSeesEarlierMutations() throws {
        let batch = try write(
            (.put("b", "1", "r2"), nil), (.check("b", if: .revision("r2")), nil), (.remove("b"), nil),
            (.check("b", if: .absent), nil))
        #expect(batch.outcomeTexts == ["applied", "applied", "applied", "applied"])
        #expect(test.plugin[.violations] == 0)
    }

    /// A patch keeps what it does not change: when the record expires.
    @Test func transformationKeepsTheTimeOfExpiry() throws {
        let inbox = try Inbox<WorkItem>()
        let expiring = MutationBatch { inbox.put($0) }
        let later = CallContext.now + 3_600_000
        var mutation = expiring.mutation(.put("b", "1", "r1"), in: clients)
        mutation.expiresAt = later
        expiring.append(mutation)
        test.backend.submit(.write(expiring))
        _ = try inbox.take()
        _ = try write((.put("b", "", "r2"), Appending("2")))

        let batch = ReadBatch { inbox.put($0) }
        batch.append(Read(.records([batch.store(Array("b".utf8).span)]), in: clients))
        test.backend.submit(.read(.batch(batch)))
        _ = try inbox.take()
        guard case .records(let records) = batch.result(at: 0) else { throw Failure("no records") }
        #expect(records.map { $0?.expiresAt } == [later])
    }
}
