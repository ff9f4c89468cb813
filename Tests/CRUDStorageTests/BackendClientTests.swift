import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// One event loop's requests on their way to a backend and back.
@Suite struct BackendClientTests {
    private let test: TestBackend
    private let loop: TestLoop
    private let client: BackendClient
    private let clients: Collection

    init() throws {
        (test, loop, client, clients) = try Self.opened()
    }

    private static func opened(
        capabilities: Plugin.Capabilities = [.concurrentReads, .transactions], options: String = "{}"
    ) throws -> (TestBackend, TestLoop, BackendClient, Collection) {
        let test = try TestBackend.opened(capabilities: capabilities, options: options)
        let loop = try TestLoop()
        let client = BackendClient(test.backend, loop: loop)
        return (test, loop, client, try Collection("clients", of: client))
    }

    // MARK: Batches

    /// Mutations of one iteration take effect in the order of their requests, whatever kind they are of.
    @Test func requestsOfAnIterationAreSubmittedInOrder() throws {
        var log: [String] = []
        let requests = ["first", "second", "atomic", "third"].map { name in
            TestCompletion { log.append("\(name): \($0)") }
        }
        clients.write(.put("a", "1", if: .absent), for: requests[0])
        clients.write(.put("a", "2", if: .present), .put("b"), for: requests[1])
        clients.write(atomic: .check("b", if: .present), .put("a", "3", if: .present), for: requests[2])
        clients.write(.remove("a"), .put("a", "4", if: .absent), for: requests[3])
        #expect(!client.isIdle)
        #expect(test.plugin[.writes] == 0, "nothing is handed over before the iteration ends")
        client.flush()
        try loop.complete(3, by: client)
        #expect(
            log == [
                "first: applied", "second: replaced, applied", "first: ended", "second: ended",
                "atomic: applied, replaced", "atomic: ended", "third: applied, applied", "third: ended",
            ])
        #expect(client.isIdle)
        #expect(try test.read(["a", "b"], in: clients.stored) == .records(["4@r", "1@r"]))
    }

    @Test func readsOfAnIterationShareABatchBehindItsMutations() throws {
        let (write, first, second, count) = (TestCompletion(), TestCompletion(), TestCompletion(), TestCompletion())
        clients.read(["a"], for: first)
        clients.write(.put("a", "1"), .put("b", "2"), for: write)
        clients.read(["b", "x"], for: second)
        clients.count(for: count)
        #expect(!client.isIdle)
        client.flush()
        try loop.complete(2, by: client)
        #expect(write.events == ["applied, applied", "ended"])
        #expect(first.events == ["1@r", "ended"])
        #expect(second.events == ["2@r, none", "ended"])
        #expect(count.events == ["2 records", "ended"])
        #expect(test.plugin[.reads] == 1)
    }

    @Test func iterationWithoutRequestsSubmitsNothing() throws {
        client.flush()
        client.flush()
        #expect(client.isIdle && client.isQuiescent)
        #expect(loop.deliveredCount == 0)
    }

    /// Each object that waits is told once of the outcome and once of the end, whatever else happens.
    @Test func everyRequestIsCompletedAndEndedOnce() throws {
        var requests: [TestCompletion] = []
        for number in 0..<100 {
            let completion = TestCompletion(deadline: .seconds(number % 2 == 0 ? 1 : 100))
            if number % 3 == 0 {
                clients.read(["\(number)"], for: completion)
            } else {
                clients.write(.put("\(number)"), for: completion)
            }
            if number % 10 == 9 {
                client.flush()
                client.expire(at: .seconds(number / 10))
            }
            requests.append(completion)
        }
        let deadline = Deadline()
        while !client.isIdle {
            try #require(!deadline.hasPassed)
            try loop.complete(by: client)
        }
        #expect(requests.allSatisfy { $0.events.count == 2 && $0.events.last == "ended" })
    }

    /// An item of another loop's client, or one that has been withdrawn.
    @Test func unknownItemIsIgnored() throws {
        client.complete(MutationBatch { _ in })
        #expect(client.isIdle)
    }

    // MARK: Failures

    @Test func failureOfABatchIsThatOfItsRequests() throws {
        let (good, bad) = (TestCompletion(), TestCompletion())
        clients.write(.put("a"), for: good)
        clients.write(.put("call:\(CRUDD_NO_SPACE)"), for: bad)
        client.flush()
        try loop.complete(by: client)
        #expect(good.events == ["refused no_space", "ended"])
        #expect(bad.events == ["refused no_space", "ended"])
    }

    @Test func backendThatIsNotOpenIsUnavailable() throws {
        let test = try TestBackend(options: #"{"open_failures":1000,"open_status":\#(CRUDD_UNAVAILABLE)}"#)
        #expect(try test.start() != nil)
        let client = BackendClient(test.backend, loop: loop)
        let clients = try Collection(of: client)
        let requests = (0..<4).map { _ in TestCompletion() }
        clients.write(.put("a"), for: requests[0])
        clients.write(atomic: .put("a"), for: requests[1])
        clients.read(["a"], for: requests[2])
        client.submit(
            SearchTask(SearchRequest.all(.count), in: clients.stored, deliver: client.deliver), for: requests[3])
        client.flush()
        try loop.complete(4, by: client)
        for request in requests { #expect(request.events == ["unavailable", "ended"]) }
        test.backend.stop()
        clients.read(["a"], for: requests[0])
        client.flush()
        try loop.complete(by: client)
        #expect(requests[0].events == ["unavailable", "ended", "unavailable", "ended"])
    }

    /// Requests that have come while the storage is being opened wait for it.
    @Test func backendThatIsBeingOpenedIsWaitedFor() throws {
        let test = try TestBackend()
        let client = BackendClient(test.backend, loop: loop)
        let completion = TestCompletion()
        try Collection(of: client).write(.put("a"), for: completion)
        client.flush()
        #expect(!client.isIdle)
        #expect(try test.start() == nil)
        try loop.complete(by: client)
        #expect(completion.events == ["applied", "ended"])
    }

    // MARK: Overdue requests

    /// Nothing can have been applied where no worker has begun; otherwise the outcome of a write is unknown.
    @Test func overdueWriteIsWithdrawnUnlessItHasBegun() throws {
        let (test, loop, client, clients) = try Self.opened(options: #"{"gated":1}"#)
        let (begun, queued) = (TestCompletion(), TestCompletion())
        clients.write(.put("a"), for: begun)
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        clients.write(.put("b"), for: queued)
        client.flush()

        client.expire(at: .seconds(9))
        #expect(begun.events.isEmpty && queued.events.isEmpty)
        client.expire(at: .seconds(10))
        #expect(begun.events == ["overdue: outcome_unknown"], "the backend may still be busy with it")
        #expect(queued.events == ["overdue: unavailable", "ended"])
        #expect(!client.isIdle)
        client.expire(at: .seconds(20))
        #expect(begun.events.count == 1)

        test.plugin.pass()
        try loop.complete(by: client)
        #expect(begun.events == ["overdue: outcome_unknown", "ended"])
        #expect(client.isIdle)
        #expect(try test.read(["a", "b"], in: clients.stored) == .records(["1@r", nil]))
        #expect(loop.deliveredCount == 0, "what is withdrawn is not handed back")
    }

    /// However long the plugin hangs, what is withdrawn takes no memory.
    @Test func withdrawnItemIsReleased() throws {
        let (test, loop, client, clients) = try Self.opened(options: #"{"gated":1}"#)
        clients.write(.put("a"), for: TestCompletion(deadline: .seconds(100)))
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        clients.write(.put("b"), for: TestCompletion())
        weak let batch = client.pendingMutations(of: 0, transforms: false)
        client.flush()
        #expect(test.backend.queueLength == 1)
        client.expire(at: .seconds(10))
        #expect(test.backend.queueLength == 0)
        #expect(batch == nil)
        test.plugin.pass()
        try loop.complete(by: client)
    }

    @Test func overdueReadIsUnavailable() throws {
        let (test, loop, client, clients) = try Self.opened(capabilities: [], options: #"{"gated":1}"#)
        let (write, read) = (TestCompletion(deadline: .seconds(100)), TestCompletion())
        clients.write(.put("a"), for: write)
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        clients.read(["a"], for: read)
        client.flush()
        client.expire(at: .seconds(10))
        #expect(read.events == ["overdue: unavailable", "ended"])
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(write.events == ["applied", "ended"])
    }

    /// The requests of a batch need not have one deadline: the batch is withdrawn with the last.
    @Test func batchIsWithdrawnWithItsLastRequest() throws {
        let (test, loop, client, clients) = try Self.opened(options: #"{"gated":1}"#)
        let blocker = TestCompletion(deadline: .seconds(100))
        clients.write(.put("a"), for: blocker)
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        let (early, late) = (TestCompletion(deadline: .seconds(1)), TestCompletion(deadline: .seconds(2)))
        clients.write(.put("b"), for: early)
        clients.write(.put("c"), for: late)
        client.flush()
        client.expire(at: .seconds(1))
        #expect(early.events == ["overdue: outcome_unknown"], "it may be applied with the other one")
        #expect(late.events.isEmpty)
        client.expire(at: .seconds(2))
        #expect(late.events == ["overdue: unavailable", "ended"])
        #expect(early.events == ["overdue: outcome_unknown", "ended"])
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(client.isIdle)
        #expect(try test.read(["b", "c"], in: clients.stored) == .records([nil, nil]))
    }

    /// A batch that is executed completes those that are not overdue.
    @Test func requestInTimeIsCompletedBesideAnOverdueOne() throws {
        let (test, loop, client, clients) = try Self.opened(options: #"{"gated":1}"#)
        let (early, late) = (TestCompletion(deadline: .seconds(1)), TestCompletion(deadline: .seconds(100)))
        clients.write(.put("a"), for: early)
        clients.write(.put("b"), for: late)
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        client.expire(at: .seconds(1))
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(early.events == ["overdue: outcome_unknown", "ended"])
        #expect(late.events == ["applied", "ended"])
    }

    // MARK: Quiescing

    @Test func quiescingHandsOverWhatHasBeenGathered() throws {
        let (write, read) = (TestCompletion(), TestCompletion())
        clients.write(.put("a"), for: write)
        clients.read(["a"], for: read)
        client.quiesce()
        #expect(client.isQuiescent)
        try loop.complete(2, by: client)
        #expect(write.events == ["applied", "ended"])
        #expect(read.events == ["1@r", "ended"])
    }
}
