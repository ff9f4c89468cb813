import CRUDJSON
import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Searches that a child executes next to its plugin.
@Suite struct RemoteSearchTests {
    private let child: ChildBackend
    private let loop: TestLoop
    private let client: BackendClient
    private let clients: Collection

    init() throws {
        child = try ChildBackend()
        loop = try TestLoop()
        client = BackendClient(child.backend, loop: loop)
        clients = try Collection("clients", of: client)
        try child.write(
            .put("a", #"{"n":1}"#, "r1"), .put("b", #"{"n":2}"#, "r2"), .put("c", #"{"n":2}"#, "r3"),
            .put("d", "{", "r4"), in: clients.stored)
    }

    /// Submits a search and waits for it.
    private func execute(_ task: SearchTask) throws -> TestCompletion {
        try complete { client.submit(task, for: $0) }
    }

    /// Submits a deletion and waits for it.
    private func execute(_ task: BulkDelete) throws -> TestCompletion {
        try complete { client.submit(task, for: $0) }
    }

    private func complete(_ submit: (TestCompletion) -> Void) throws -> TestCompletion {
        let completion = TestCompletion()
        submit(completion)
        client.flush()
        try loop.complete(by: client)
        return completion
    }

    private func search(_ request: SearchRequest) throws -> JSON {
        let task = SearchTask(request, in: clients.stored, deliver: client.deliver)
        return try JSON(parsing: try #require(execute(task).events.first))
    }

    @Test func childFindsWhatMatches() throws {
        #expect(child.backend.child?.canSearch == true)
        let filter = try Filter(cql2Text: "n = 2")
        let page = try search(.all(.query) { $0.filter = filter })
        #expect(page["records"]?.elements?.map { $0["id"]?.string } == ["b", "c"])
        #expect(page["records"]?.elements?.first?["item"]?.text == #"{"n":2}"#)
        #expect(page["corrupt"]?.elements?.map(\.string) == ["d"])
        #expect(try search(.all(.count) { $0.filter = filter })["count"]?.integer == 2)
    }

    @Test func pagesContinue() throws {
        let first = try search(.all(.query) { $0.limit = 1 })
        let cursor = try #require(first["cursor"]?.string)
        var next = Query()
        next.limit = 1
        try next.resume(from: Array(cursor.utf8), in: clients.name)
        let second = try search(.all(.query) { [next] in $0 = next })
        #expect([first, second].map { $0["records"]?.elements?.first?["id"]?.string } == ["a", "b"])
    }

    @Test func errorOfTheExecutorIsTheSearchs() throws {
        let request = SearchRequest(.query, Query(), maximumBytes: 50, maximumItemBytes: 1 << 20, timeout: .seconds(10))
        let task = SearchTask(request, in: clients.stored, deliver: client.deliver)
        #expect(try execute(task).events == ["limit_exceeded", "ended"])
        #expect(task.failure?.details.limit == "frame_bytes")
    }

    @Test func childFindsWhatIsDeleted() throws {
        let filter = try Filter(cql2Text: "n = 2")
        let task = BulkDelete(of: .all(.query) { $0.filter = filter }, in: clients.stored, deliver: client.deliver)
        #expect(try execute(task).events == ["2 deleted", "ended"])
        #expect(task.corrupt == [Array("d".utf8)])
        #expect(try search(.all(.count) { $0.prefix = Array("b".utf8) })["count"]?.integer == 0)
    }

    @Test func childKeepsNoSearchThatIsOver() throws {
        let filter = try Filter(cql2Text: "n = 2")
        let invalid = SearchRequest(.query, Query(), maximumBytes: 50, maximumItemBytes: 1 << 20, timeout: .seconds(10))
        _ = try execute(SearchTask(invalid, in: clients.stored, deliver: client.deliver))
        _ = try search(.all(.query) { $0.filter = filter })
        let deletion = BulkDelete(of: .all(.query) { $0.filter = filter }, in: clients.stored, deliver: client.deliver)
        _ = try execute(deletion)
        let running = try #require(child.backend.child)
        for task in 1...5 { #expect(throws: PluginFailure.self) { try running.continueSearch(task) } }
    }

    /// A record of the last batch may have changed before it was removed.
    @Test func matchingSearchCanBeRewoundAfterItsEnd() throws {
        let running = try #require(child.backend.child)
        let number = try #require(clients.stored.number(inChild: running.identity))
        var query = JSONWriter()
        Query().write(to: &query)
        let search = ChildSearch(
            .matching, in: number, query: query.bytes, indexes: [], maximumBytes: 1 << 20, maximumItemBytes: 1 << 20,
            timeout: .seconds(10))
        func ids(_ slice: ChildSearch.Slice) throws -> [String] {
            let batch = try #require(MatchBatch(json: slice.result))
            return batch.found.map { String(decoding: $0.id, as: UTF8.self) }
        }
        var slice = try running.search(search)
        #expect(slice.isDone)
        #expect(try ids(slice) == ["a", "b", "c", "d"])
        slice = try running.continueSearch(slice.task, from: 2)
        #expect(slice.isDone)
        #expect(try ids(slice) == ["c", "d"])
        running.endSearch(slice.task)
        #expect(throws: PluginFailure.self) { try running.continueSearch(slice.task) }
    }
}
