import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Reads on the event loop itself.
@Suite struct LoopStoreTests {
    private let test: TestBackend
    private let loop: TestLoop
    private let client: BackendClient
    private let clients: Collection

    init() throws {
        test = try TestBackend.opened(loops: 1)
        loop = try TestLoop()
        client = BackendClient(test.backend, loop: loop)
        clients = try Collection("clients", of: client)
    }

    private func open() throws { try test.write(.put("a", "1"), .put("b", "2"), in: clients.stored) }

    private func readNow(_ id: String, _ visitor: TextVisitor) throws -> Bool {
        let id = Array(id.utf8)
        return try client.store.readNow(id.span, in: clients.stored, into: visitor)
    }

    @Test func readsAtOnce() throws {
        let visitor = TextVisitor()
        #expect(try !readNow("a", visitor), "the collection has not been opened yet")
        try open()
        #expect(try readNow("a", visitor))
        #expect(try readNow("x", visitor))
        #expect(visitor.texts == ["1@r"])
        let completion = TestCompletion()
        clients.read(["b", "x", "a"], for: completion)
        #expect(completion.events == ["2@r, none, 1@r", "ended"], "before the iteration ends")
        #expect(client.isIdle)
        #expect(throws: CRUDError.self) { try readNow("call:\(CRUDD_CORRUPT)", visitor) }
    }

    @Test func collectionThatIsNotOpenGoesToThreads() throws {
        let completion = TestCompletion()
        clients.read(["a"], for: completion)
        #expect(completion.events.isEmpty && !client.isIdle)
        client.flush()
        try loop.complete(by: client)
        #expect(completion.events == ["none", "ended"])
    }

    /// The writer's thread may open a collection while a request is being handled on the loop.
    @Test func collectionMayBeOpenedWhileAReadIsGathered() throws {
        let (stale, completion) = (TestCompletion(), TestCompletion())
        let batch = client.store.pendingReads(for: clients.stored)
        let place = batch.store(Array("a".utf8).span)
        try open()
        client.store.submit(Read(.records([place]), in: clients.stored), for: completion)
        client.flush()
        try loop.complete(by: client)
        #expect(completion.events == ["1@r", "ended"])

        // A request that has failed before it submitted anything leaves nothing to the next one.
        _ = client.store.pendingReads(for: clients.stored).store(Array("x".utf8).span)
        let other = try Collection("other", of: client)
        let otherPlace = client.store.pendingReads(for: other.stored).store(Array("b".utf8).span)
        try test.write(.put("b", "3"), in: other.stored)
        client.store.submit(Read(.records([otherPlace]), in: other.stored), for: stale)
        client.flush()
        try loop.complete(by: client)
        #expect(stale.events == ["3@r", "ended"])
    }

    /// Counting may take long.
    @Test func countsAreLeftToThreads() throws {
        try open()
        let (read, count) = (TestCompletion(), TestCompletion())
        clients.count(prefix: "a", for: count)
        clients.read(["a"], for: read)
        #expect(read.events == ["1@r", "ended"])
        #expect(count.events.isEmpty)
        client.flush()
        try loop.complete(by: client)
        #expect(count.events == ["1 records", "ended"])
    }

    /// A small page by id takes microseconds; what sorts or looks for many may take long.
    @Test func smallPagesAreFoundAtOnce() throws {
        try open()
        func search(_ change: (inout Query) -> Void) -> (isDone: Bool, completion: TestCompletion) {
            let completion = TestCompletion()
            let task = SearchTask(.all(.query, change), in: clients.stored, deliver: client.deliver)
            return (client.store.searchNow(task, for: completion), completion)
        }
        let page = search { $0.limit = 1 }
        #expect(page.isDone)
        let event = try #require(page.completion.events.first)
        #expect(event.hasPrefix(#"{"records":[{"id":"a","item":1,"revision":"r"}],"cursor":"#), "\(event)")
        #expect(page.completion.events.last == "ended" && client.isIdle)
        #expect(search { $0.limit = 100 }.completion.events.count == 2)
        #expect(!search { $0.limit = 101 }.isDone)
        #expect(!search { $0.filter = .constant(true) }.isDone)
        let count = SearchTask(.all(.count), in: clients.stored, deliver: client.deliver)
        #expect(!client.store.searchNow(count, for: TestCompletion()))
    }

    // MARK: Snapshots

    @Test func snapshotIsReleasedWhenItIsStale() throws {
        try open()
        #expect(!client.store.holdsSnapshot)
        let visitor = TextVisitor()
        #expect(try readNow("a", visitor))
        #expect(client.store.holdsSnapshot)
        client.store.releaseStaleSnapshot()
        #expect(client.store.holdsSnapshot)
        try test.write(.put("a", "2"), in: clients.stored)
        client.store.releaseStaleSnapshot()
        #expect(!client.store.holdsSnapshot)
        #expect(try readNow("a", visitor))
        client.store.releaseSnapshot()
        #expect(!client.store.holdsSnapshot)
        #expect(visitor.texts == ["1@r", "2@r"])
    }

    /// A reading thread may have seen a write that has not been acknowledged yet: whoever is told of it must not be
    /// shown an older state by the loop.
    @Test func snapshotIsReleasedBeforeAnItemIsCompleted() throws {
        try open()
        let visitor = TextVisitor()
        #expect(try readNow("a", visitor))
        var holdsSnapshot: Bool?
        let completion = TestCompletion { [client] _ in holdsSnapshot = client.store.holdsSnapshot }
        clients.count(for: completion)
        client.flush()
        #expect(client.store.holdsSnapshot)
        try loop.complete(by: client)
        #expect(holdsSnapshot == false)
    }

    @Test func quiescingReleasesReaderAndSnapshot() throws {
        try open()
        let visitor = TextVisitor()
        #expect(try readNow("a", visitor))
        client.quiesce()
        #expect(client.isQuiescent && !client.store.holdsSnapshot)
        test.backend.stop()
        #expect(try !readNow("a", visitor))
        #expect(test.plugin[.violations] == 0)
    }
}
