import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// The hand-over of items between an event loop and a worker.
@Suite struct WorkItemTests {
    @Test func isClaimedOrExpiredOnce() {
        let claimed = MutationBatch { _ in }
        #expect(claimed.claim())
        #expect(!claimed.expire() && !claimed.claim())
        let expired = MutationBatch { _ in }
        #expect(expired.expire())
        #expect(!expired.claim() && !expired.expire())
    }

    /// Worker and loop reach for the same items, each from its end; every item goes to one of them.
    @Test func oneOfTwoThreadsGetsIt() throws {
        let items = (0..<20_000).map { _ in MutationBatch { _ in } }
        let claims = OneShot<[Bool]>()
        let worker = try Thread(named: "worker") { claims.resolve(items.map { $0.claim() }) }
        let expiries = Array(items.reversed().map { $0.expire() }.reversed())
        let claimed = claims.wait()
        worker.join()
        #expect(zip(claimed, expiries).allSatisfy { $0 != $1 })
    }

    @Test func finishingDeliversIt() throws {
        let inbox = try Inbox<WorkItem>()
        let item = ReadBatch { inbox.put($0) }
        item.finish()
        #expect(try inbox.take() === item)
    }
}
