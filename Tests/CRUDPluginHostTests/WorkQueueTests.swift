import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

@Suite struct WorkQueueTests {
    private func item(ofBytes size: Int = 0) -> MutationBatch {
        let batch = MutationBatch { _ in }
        _ = batch.store([UInt8](repeating: 0, count: size).span)
        return batch
    }

    /// How many items a take answers; nil for anything else.
    private func taken(_ queue: WorkQueue) -> Int? {
        if case .items(let items) = queue.take(patience: .zero) { items.count } else { nil }
    }

    @Test func givesItemsInOrder() throws {
        let queue = WorkQueue()
        let items = (0..<5).map { _ in item() }
        for item in items { #expect(queue.append(item)) }
        guard case .items(let taken) = queue.take(patience: nil) else { throw Failure("nothing taken") }
        #expect(taken.map(ObjectIdentifier.init) == items.map(ObjectIdentifier.init))
        #expect(self.taken(queue) == nil)
    }

    @Test func oneCallStaysASensibleSize() {
        let queue = WorkQueue()
        for _ in 0..<600 { _ = queue.append(item()) }
        #expect([taken(queue), taken(queue), taken(queue), taken(queue)] == [256, 256, 88, nil])
        for size in [1, 9 << 20, 1, 1, 20 << 20, 4 << 20, 4 << 20, 1] { _ = queue.append(item(ofBytes: size)) }
        #expect([taken(queue), taken(queue), taken(queue), taken(queue)] == [2, 3, 2, 1])
    }

    @Test func waitsOnlySoLong() {
        let queue = WorkQueue()
        let start = ContinuousClock.now
        guard case .nothing = queue.take(patience: .milliseconds(20)) else {
            Issue.record("there is nothing to take")
            return
        }
        #expect(start.duration(to: .now) >= .milliseconds(20))
    }

    @Test func whatIsThereCanBeTakenAfterItIsClosed() {
        let queue = WorkQueue()
        #expect(queue.append(item()))
        queue.close()
        #expect(!queue.append(item()))
        #expect(taken(queue) == 1)
        guard case .closed = queue.take(patience: nil) else {
            Issue.record("a closed queue waits")
            return
        }
    }

    @Test(arguments: [nil, .seconds(60)] as [Duration?])
    func wakesWhoWaits(patience: Duration?) throws {
        let queue = WorkQueue()
        let inbox = try Inbox<Int>()
        let taker = try Thread(named: "taker") {
            while true {
                switch queue.take(patience: patience) {
                case .items(let items): for _ in items { inbox.put(1) }
                case .nothing, .woken: inbox.put(0)
                case .closed: return inbox.put(-1)
                }
            }
        }
        for _ in 0..<100 {
            #expect(queue.append(item()))
            #expect(try inbox.take() == 1)
        }
        queue.close()
        #expect(try inbox.take() == -1)
        taker.join()
    }
}
