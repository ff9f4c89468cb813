import CRUDTestSupport
import Testing

/// Histories of atomic batches, false and true.
@Suite struct BatchHistoryTests {
    private typealias Batch = BatchHistory.Batch

    /// Of batches that are executed at the same time.
    private static func violations(_ batches: (Batch, BatchHistory.Outcome)...) -> [String] {
        var history = BatchHistory()
        for (batch, _) in batches { history.begin(batch) }
        for (batch, outcome) in batches { history.end(batch.number, outcome) }
        return history.violations()
    }

    @Test func batchesInSomeOrderArePossible() {
        #expect(
            Self.violations(
                (Batch(1, found: ["a": 0, "b": 0], written: ["a", "b"]), .applied),
                (Batch(2, found: ["a": 1], written: ["a"]), .applied),
                (Batch(4, found: ["a": 2, "b": 1], written: []), .applied),
                (Batch(3, found: ["a": 2, "b": 1], written: ["b"]), .applied)) == [])
    }

    @Test func aLostUpdateIsFound() {
        #expect(
            Self.violations(
                (Batch(1, found: ["a": 0], written: ["a"]), .applied),
                (Batch(2, found: ["a": 1], written: ["a"]), .applied),
                (Batch(3, found: ["a": 1], written: ["a"]), .applied)) == ["2 and 3 have both replaced 1 in a"])
    }

    /// Each has checked what the other has changed, or made.
    @Test func writeSkewIsFound() {
        #expect(
            Self.violations(
                (Batch(1, found: ["a": 0, "b": 0], written: ["a", "b"]), .applied),
                (Batch(2, found: ["a": 1, "b": 1], written: ["a"]), .applied),
                (Batch(3, found: ["a": 1, "b": 1], written: ["b"]), .applied)
            ).count == 1)
        #expect(
            Self.violations(
                (Batch(2, found: ["a": 0, "b": 0], written: ["a"]), .applied),
                (Batch(3, found: ["a": 0, "b": 0], written: ["b"]), .applied)
            ).count == 1)
    }

    /// Of three batches each has checked what the next one has changed.
    @Test func aCycleOfThreeIsFound() {
        #expect(
            Self.violations(
                (Batch(1, found: ["a": 0, "b": 0], written: ["a"]), .applied),
                (Batch(2, found: ["b": 0, "c": 0], written: ["b"]), .applied),
                (Batch(3, found: ["c": 0, "a": 0], written: ["c"]), .applied)
            ).count == 1)
    }

    @Test(arguments: [BatchHistory.Outcome.applied, .unknown])
    func aTornBatchIsFound(outcome: BatchHistory.Outcome) {
        #expect(
            Self.violations(
                (Batch(1, found: ["a": 0, "b": 0], written: ["a", "b"]), outcome),
                (Batch(2, found: ["a": 1, "b": 0], written: []), .applied)
            ).count == 1)
    }

    @Test func anUnknownBatchIsAppliedOrNot() {
        let unknown = (Batch(1, found: ["a": 0], written: ["a"]), BatchHistory.Outcome.unknown)
        #expect(Self.violations(unknown, (Batch(2, found: ["a": 0], written: ["a"]), .applied)) == [])
        #expect(Self.violations(unknown, (Batch(2, found: ["a": 1], written: ["a"]), .applied)) == [])
        #expect(
            Self.violations(
                unknown, (Batch(2, found: ["a": 1], written: []), .applied),
                (Batch(3, found: ["a": 0], written: ["a"]), .applied)
            ).count == 1)
    }

    /// It was replaced, and that acknowledged, before it was checked.
    @Test func aStaleCheckIsFound() {
        let (writing, checking) = (Batch(1, found: ["a": 0], written: ["a"]), Batch(2, found: ["a": 0], written: []))
        #expect(Self.violations((writing, .applied), (checking, .applied)) == [])
        for (first, second) in [(writing, checking), (checking, writing)] {
            var history = BatchHistory()
            for batch in [first, second] {
                history.begin(batch)
                history.end(batch.number, .applied)
            }
            #expect(history.violations().isEmpty == (first.number == checking.number))
        }
    }

    @Test func whatWasRefusedOrNeverWrittenIsFound() {
        for outcome in [BatchHistory.Outcome.applied, .refused] {
            let refused = (Batch(1, found: ["a": 0], written: ["a"]), BatchHistory.Outcome.refused)
            #expect(Self.violations(refused, (Batch(2, found: ["a": 1], written: []), outcome)).count == 1)
            #expect(Self.violations((Batch(2, found: ["a": 7], written: []), outcome)).count == 1)
        }
    }
}
