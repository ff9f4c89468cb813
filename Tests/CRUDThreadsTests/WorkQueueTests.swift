import Glibc
import Testing

@testable import CRUDThreads

@Suite struct WorkQueueTests {
    private final class Item: QueueItem, Sendable {
        let byteCount: Int
        let operationCount: Int?

        init(byteCount: Int = 0, operationCount: Int? = nil) {
            self.byteCount = byteCount
            self.operationCount = operationCount
        }
    }

    private struct NothingTaken: Error {}

    /// How many items a take returns; nil for anything else.
    private func takenCount(_ queue: WorkQueue<Item>) -> Int? {
        if case .items(let items) = queue.take(timeout: .zero) { items.count } else { nil }
    }

    @Test func itemsAreTakenInOrder() throws {
        let queue = WorkQueue<Item>()
        let items = (0..<5).map { _ in Item() }
        for item in items { #expect(queue.append(item)) }
        guard case .items(let taken) = queue.take(timeout: nil) else { throw NothingTaken() }
        #expect(taken.map(ObjectIdentifier.init) == items.map(ObjectIdentifier.init))
        #expect(takenCount(queue) == nil)
    }

    @Test func batchesAreLimitedByNumberAndBytes() {
        let queue = WorkQueue<Item>()
        for _ in 0..<600 { _ = queue.append(Item()) }
        #expect((0..<4).map { _ in takenCount(queue) } == [256, 256, 88, nil])
        for size in [1, 9 << 20, 1, 1, 20 << 20, 4 << 20, 4 << 20, 1] { _ = queue.append(Item(byteCount: size)) }
        #expect((0..<4).map { _ in takenCount(queue) } == [2, 3, 2, 1])
    }

    @Test func whatIsRemovedIsNotTaken() throws {
        let queue = WorkQueue<Item>()
        let items = (0..<3).map { _ in Item() }
        for item in items { #expect(queue.append(item)) }
        #expect(queue.removeFirst { $0 === items[1] })
        #expect(!queue.removeFirst { $0 === items[1] })
        guard case .items(let taken) = queue.take(timeout: nil) else { throw NothingTaken() }
        #expect(taken.map(ObjectIdentifier.init) == [items[0], items[2]].map(ObjectIdentifier.init))
        #expect(!queue.removeFirst { $0 === items[0] })
    }

    @Test func theTimeoutEndsAWait() {
        let queue = WorkQueue<Item>()
        let start = ContinuousClock.now
        guard case .timedOut = queue.take(timeout: .milliseconds(20)) else {
            Issue.record("there is nothing to take")
            return
        }
        #expect(start.duration(to: .now) >= .milliseconds(20))
    }

    @Test func aClosedQueueCanBeEmptied() {
        let queue = WorkQueue<Item>()
        #expect(queue.append(Item()))
        queue.close()
        #expect(!queue.append(Item()))
        #expect(takenCount(queue) == 1)
        guard case .closed = queue.take(timeout: nil) else {
            Issue.record("a closed queue waits")
            return
        }
    }

    @Test func wakingComesBeforeItems() {
        let queue = WorkQueue<Item>()
        #expect(queue.append(Item()))
        queue.wake()
        guard case .woken = queue.take(timeout: nil) else {
            Issue.record("the call is lost")
            return
        }
        #expect(takenCount(queue) == 1)
    }

    // MARK: Gathering

    /// Enough operations, or an item that must not wait, are taken at once.
    @Test(arguments: [[1, 1, 1], [5], [1, nil], [nil]] as [[Int?]])
    func whatSufficesIsTakenAtOnce(counts: [Int?]) throws {
        let queue = WorkQueue<Item>()
        for count in counts { #expect(queue.append(Item(operationCount: count))) }
        let gathering = Gathering(count: 3, limit: .seconds(3600))
        guard case .items(let taken) = queue.take(timeout: nil, gathering: gathering) else { throw NothingTaken() }
        #expect(taken.count == counts.count)
    }

    @Test func gatheringHasALimit() throws {
        let queue = WorkQueue<Item>()
        #expect(queue.append(Item(operationCount: 2)))
        let start = ContinuousClock.now
        let gathering = Gathering(count: 3, limit: .milliseconds(20))
        guard case .items(let taken) = queue.take(timeout: nil, gathering: gathering) else { throw NothingTaken() }
        #expect(taken.count == 1)
        #expect(start.duration(to: .now) >= .milliseconds(20))
    }

    /// What ends the wait of a worker that gathers, from another thread.
    @Test(arguments: ["append", "close", "wake", "remove"])
    func gatheringEnds(by act: String) throws {
        let queue = WorkQueue<Item>()
        let first = Item(operationCount: 1)
        #expect(queue.append(first))
        let other = try Thread(named: "other") {
            poll(nil, 0, 20)
            switch act {
            case "append": _ = queue.append(Item(operationCount: 1))
            case "close": queue.close()
            case "wake": queue.wake()
            default:
                _ = queue.removeFirst { $0 === first }
                _ = queue.append(Item())
            }
        }
        let gathering = Gathering(count: 2, limit: .seconds(3600))
        guard case .items(let taken) = queue.take(timeout: nil, gathering: gathering) else { throw NothingTaken() }
        #expect(taken.count == (act == "append" ? 2 : 1))
        other.join()
    }

    /// The only item is removed while others are waited for. On a busy machine that may come too late for the shorter
    /// limits.
    @Test func nothingIsTakenOfWhatWasRemoved() throws {
        func isTaken(within limit: Duration) throws -> Bool {
            let queue = WorkQueue<Item>()
            let item = Item(operationCount: 1)
            #expect(queue.append(item))
            let other = try Thread(named: "other") {
                poll(nil, 0, 20)
                _ = queue.removeFirst { $0 === item }
            }
            defer { other.join() }
            if case .timedOut = queue.take(timeout: nil, gathering: Gathering(count: 2, limit: limit)) { return false }
            return true
        }
        let limits: [Duration] = [.milliseconds(200), .seconds(1), .seconds(5), .seconds(20)]
        let isEverEmpty = try limits.contains { try !isTaken(within: $0) }
        #expect(isEverEmpty, "there is nothing to take")
    }

    @Test(arguments: [nil, .seconds(60)] as [Duration?])
    func aWaitingWorkerIsWoken(timeout: Duration?) throws {
        let (queue, replies) = (WorkQueue<Item>(), WorkQueue<Item>())
        let worker = try Thread(named: "worker") {
            while true {
                switch queue.take(timeout: timeout) {
                case .items(let items): for item in items { _ = replies.append(item) }
                case .woken: _ = replies.append(Item(byteCount: -1))
                case .timedOut: break
                case .closed: return replies.close()
                }
            }
        }
        for round in 0..<100 {
            let item = Item(byteCount: round)
            #expect(queue.append(item))
            guard case .items(let taken) = replies.take(timeout: .seconds(60)) else { throw NothingTaken() }
            #expect(taken.map(\.byteCount) == [round])
        }
        queue.wake()
        guard case .items(let taken) = replies.take(timeout: .seconds(60)) else { throw NothingTaken() }
        #expect(taken.map(\.byteCount) == [-1])
        queue.close()
        guard case .closed = replies.take(timeout: .seconds(60)) else { throw NothingTaken() }
        worker.join()
    }
}
