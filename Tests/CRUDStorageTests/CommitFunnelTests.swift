import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDTestSupport
import Synchronization
import Testing

@testable import CRUDStorage

/// What observers see of writes, and when.
@Suite struct CommitFunnelTests {
    /// Notes what it sees.
    private final class Observer: CommitObserver {
        private let name: String
        private let log: EventLog

        init(_ name: String, _ log: EventLog) {
            self.name = name
            self.log = log
        }

        func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>) { log.add("\(name) will commit") }

        func committed(_ commit: borrowing Commit) {
            let ids = commit.mutations.map { String(decoding: $0.record.pointee.id.buffer, as: UTF8.self) }
            log.add("\(name) committed \(ids.joined(separator: " ")): \(commit.status)")
        }
    }

    /// Events of several objects, in order.
    private final class EventLog: Sendable {
        private let events = Mutex<[String]>([])

        func add(_ event: String) { events.withLock { $0.append(event) } }

        var all: [String] { events.withLock { $0 } }
    }

    /// Makes a call with mutations of these ids.
    private func write(_ ids: [String], through funnel: CommitFunnel, _ call: () -> Int) -> Int {
        let batch = MutationBatch { _ in }
        let clients = collection()
        for id in ids { batch.append(batch.mutation(.put(id), in: clients)) }
        let records = UnsafeMutablePointer<crudd_record>.allocate(capacity: ids.count)
        defer { records.deallocate() }
        let raw = batch.pluginMutations.enumerated().map { $1.raw(sequence: 1, record: records + $0, keys: nil) }
        let outcomes = [crudd_outcome](repeating: .sized(), count: ids.count)
        return raw.withUnsafeBufferPointer { raw in
            outcomes.withUnsafeBufferPointer { outcomes in
                Int(funnel.write(raw, outcomes) { crudd_status(call()) })
            }
        }
    }

    /// A failed call may have been applied all the same.
    @Test(arguments: [CRUDD_OK, CRUDD_OUTCOME_UNKNOWN, CRUDD_NO_SPACE])
    func everyObserverSeesEveryCall(status: Int) {
        let log = EventLog()
        let funnel = CommitFunnel([Observer("first", log), Observer("second", log)])
        let returned = write(["a", "b"], through: funnel) {
            log.add("call")
            return status
        }
        #expect(returned == status)
        #expect(
            log.all == [
                "first will commit", "second will commit", "call", "first committed a b: \(status)",
                "second committed a b: \(status)",
            ])
    }

    // MARK: The clock

    @Test func clockIsOddDuringAWriteThatSeveralReadersMaySee() {
        let clock = CommitClock(readers: 2)
        let before = clock.now
        #expect(!clock.isCommitting(before))
        _ = write(["a"], through: CommitFunnel([clock])) {
            #expect(clock.now == before + 1)
            #expect(clock.isCommitting(clock.now))
            return CRUDD_OK
        }
        #expect(clock.now == before + 2)
        #expect(!clock.isCommitting(clock.now))
    }

    @Test(arguments: [0, 1])
    func clockOfASingleReaderTicksAfterTheWrite(readers: Int) {
        let clock = CommitClock(readers: readers)
        let before = clock.now
        _ = write(["a"], through: CommitFunnel([clock])) {
            #expect(clock.now == before)
            #expect(!clock.isCommitting(clock.now))
            return CRUDD_UNAVAILABLE
        }
        #expect(clock.now == before + 1)
        #expect(!clock.isCommitting(clock.now))
    }

    /// Whoever is told of a write finds older snapshots stale.
    @Test(arguments: [1, 2])
    func clockTicksBeforeTheWriteIsDelivered(loops: Int) throws {
        let test = try TestBackend.opened(loops: loops)
        let clients = collection()
        let clock = test.backend.environment.clock
        let before = clock.now
        let delivered = try Inbox<UInt64>()
        let batch = MutationBatch { _ in delivered.put(clock.now) }
        batch.append(.put("a"), in: clients)
        test.backend.submit(.write(batch))
        #expect(try delivered.take() == before + UInt64(loops))
    }

    /// Whatever calls the plugin passes the funnel; what need not call it does not.
    @Test func clockCountsCalls() throws {
        let test = try TestBackend.opened(loops: 1)
        let clients = collection()
        #expect(test.backend.environment.clock.now == 0)
        try test.write(.put("a"), in: clients)
        try test.write(.put("b"), .put("call:\(CRUDD_NO_SPACE)"), in: clients)
        #expect(test.backend.environment.clock.now == UInt64(test.plugin[.writes]))
        try test.write(.remove("a"), in: collection("missing"))
        #expect(test.backend.environment.clock.now == 2, "the plugin has not been asked")
    }
}
