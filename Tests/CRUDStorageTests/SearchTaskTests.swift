import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// Searches for records, on the threads that read.
@Suite struct SearchTaskTests {
    private let loop: TestLoop

    init() throws { loop = try TestLoop() }

    private func opened(
        capabilities: Plugin.Capabilities = [.concurrentReads], options: String = "{}"
    ) throws -> (TestBackend, BackendClient, Collection) {
        let test = try TestBackend.opened(capabilities: capabilities, options: options)
        let client = BackendClient(test.backend, loop: loop)
        return (test, client, try Collection("clients", of: client))
    }

    private static func filter(_ text: String) throws -> Filter { try Filter(cql2Text: text) }

    private func submit(_ request: SearchRequest, in collection: Collection, for completion: TestCompletion) {
        let task = SearchTask(request, in: collection.stored, deliver: collection.client.deliver)
        collection.client.submit(task, for: completion)
        collection.client.flush()
    }

    /// The result of a search, as JSON text or the code of its error.
    private func result(_ request: SearchRequest, in collection: Collection) throws -> String {
        let completion = TestCompletion()
        submit(request, in: collection, for: completion)
        try loop.complete(by: collection.client)
        #expect(completion.events.last == "ended")
        return completion.events[0]
    }

    /// The records of a page, as `ID: ITEM@REVISION`.
    private func records(_ request: SearchRequest, in collection: Collection) throws -> [String] {
        let page = try JSON(parsing: try result(request, in: collection))
        return (page["records"]?.elements ?? []).map {
            "\($0["id"]?.string ?? ""): \($0["item"]?.text ?? "")@\($0["revision"]?.string ?? "")"
        }
    }

    /// A drop does not wait for searches: where the plugin fails because of it that is no failure of the daemon.
    @Test func aSearchOfADroppedCollectionIsUnavailable() throws {
        let (test, _, clients) = try opened()
        try test.write(.put("a", "1"), in: clients.stored)
        let task = SearchTask(.all(.count), in: clients.stored) { _ in }
        let (failure, damage) = (CRUDError(.internalError, "no such table"), CRUDError(.corrupt, "damaged"))
        task.beginSlice()
        #expect(task.failure(of: failure).code == .internalError)
        let name = clients.stored.name
        try test.backend.perform(within: .seconds(30)) { $0.closeCollection(named: name) }
        #expect(task.failure(of: failure).code == .unavailable && task.failure(of: damage).code == .corrupt)
        try test.write(.put("a", "1"), in: clients.stored)
        #expect(clients.stored.isOpen && task.failure(of: failure).code == .unavailable, "it is another one")
    }

    @Test(arguments: [[], [.concurrentReads]] as [Plugin.Capabilities])
    func findsMatchingRecords(capabilities: Plugin.Capabilities) throws {
        let (test, _, clients) = try opened(capabilities: capabilities)
        try test.write(.put("a", #"{"n":1}"#), .put("b", #"{"n":2}"#), .put("c", #"{"n":3}"#), in: clients.stored)
        let filter = try Self.filter("n > 1")
        #expect(
            try records(.all(.query) { $0.filter = filter }, in: clients) == [#"b: {"n":2}@r"#, #"c: {"n":3}@r"#])
        #expect(try result(.all(.count) { $0.filter = filter }, in: clients) == #"{"count":2}"#)
        #expect(test.plugin[.violations] == 0)
    }

    @Test func missingCollectionIsEmpty() throws {
        let (test, _, clients) = try opened()
        #expect(try records(.all(.query), in: clients) == [])
        #expect(try result(.all(.count), in: clients) == #"{"count":0}"#)
        #expect(test.plugin[.scans] == 0)
    }

    @Test func collectionThatCannotBeOpenedIsAnError() throws {
        let (test, client, _) = try opened()
        #expect(try result(.all(.query), in: Collection("open:\(CRUDD_CORRUPT)", of: client)) == "corrupt")
        #expect(test.backend.status.lastError == "private reason \(CRUDD_CORRUPT)")
    }

    @Test func recordThatCannotBeDecodedIsNamed() throws {
        let (test, _, clients) = try opened()
        try test.write(.put("a", #"{"n":1}"#), .put("b", "{"), in: clients.stored)
        let filter = try Self.filter("n = 1")
        let page = try JSON(parsing: try result(.all(.query) { $0.filter = filter }, in: clients))
        #expect(page["records"]?.elements?.map { $0["id"]?.string } == ["a"])
        #expect(page["corrupt"]?.elements?.map(\.string) == ["b"])
    }

    /// A search behind mutations of the same iteration sees them.
    @Test func seesEarlierMutationsOfItsIteration() throws {
        let (test, client, clients) = try opened(capabilities: [])
        let (write, search) = (TestCompletion(), TestCompletion())
        clients.write(.put("a"), for: write)
        submit(.all(.count), in: clients, for: search)
        try loop.complete(2, by: client)
        #expect(search.events == [#"{"count":1}"#, "ended"])
        #expect(test.plugin[.writes] == 1)
    }

    @Test func indexIsUsed() throws {
        let indexed = try IndexedBackend()
        let client = BackendClient(indexed.backend, loop: loop)
        let clients = try Collection("clients", of: client, indexes: ["n"])
        try indexed.write((0..<200).map { .put("\($0)", #"{"n":\#($0)}"#) }, in: clients.stored)
        let filter = try Self.filter("n = 100")
        let result = try JSON(
            parsing: try result(
                .all(.query) {
                    $0.filter = filter
                    $0.explains = true
                }, in: clients))
        #expect(result["records"]?.elements?.count == 1)
        #expect(result["plan"]?["index"]?.string == "n")
        #expect(result["plan"]?["scanned"]?.integer == 1)
    }

    // MARK: The end

    /// Searches that take long are executed in slices between everything else, and end with the backend.
    @Test(arguments: [[], [.concurrentReads]] as [Plugin.Capabilities])
    func stoppingEndsSearches(capabilities: Plugin.Capabilities) throws {
        let (test, client, clients) = try opened(capabilities: capabilities)
        try test.write(.put("a"), in: clients.stored)
        let requests = (0..<20).map { _ in TestCompletion() }
        for request in requests { submit(.all(.count), in: clients, for: request) }
        test.backend.stop()
        try loop.complete(requests.count, by: client)
        for request in requests {
            #expect([#"{"count":1}"#, "unavailable"].contains(request.events[0]))
            #expect(request.events.count == 2)
        }
    }

    @Test func overdueSearchIsWithdrawn() throws {
        let (test, client, clients) = try opened(capabilities: [], options: #"{"gated":1}"#)
        let (write, search) = (TestCompletion(deadline: .seconds(100)), TestCompletion())
        clients.write(.put("a"), for: write)
        client.flush()
        try test.plugin.wait(for: .writeBegan)
        submit(.all(.query), in: clients, for: search)
        client.expire(at: .seconds(10))
        #expect(search.events == ["overdue: unavailable", "ended"])
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(client.isIdle)
    }

    /// A search that nobody waits for any more ends with its next slice.
    @Test func abandonedSearchEnds() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "{}"), in: clients)
        let task = SearchTask(.all(.count), in: clients) { _ in }
        let completion = TestCompletion(deadline: .zero)
        task.append(completion, 0..<1)
        #expect(task.claim())
        #expect(!task.expireWaiters(at: .zero, backend: "main"), "a worker has begun")
        #expect(completion.events == ["overdue: unavailable"])
        let reader = try #require(test.backend.reader(forLoop: 0))
        #expect(task.advance(with: reader, child: nil, test.backend.failures))
        #expect(task.failure?.code == .unavailable && task.result.isEmpty)
        task.complete()
        #expect(completion.events == ["overdue: unavailable", "ended"])
    }

    /// A search for a client that has gone away is not continued either.
    @Test func unwantedSearchIsAbandoned() throws {
        let task = SearchTask(.all(.count), in: collection()) { _ in }
        let completion = TestCompletion()
        task.append(completion, 0..<1)
        #expect(task.claim())
        #expect(!task.expireWaiters(at: .zero, backend: "main") && !task.isAbandoned)
        completion.isWanted = false
        #expect(!task.expireWaiters(at: .zero, backend: "main") && task.isAbandoned)
        #expect(completion.events.isEmpty)
    }

    /// The meaning of an index's number changes when a collection is opened with other indexes.
    @Test func searchDoesNotContinueWithReplacedIndexes() throws {
        let indexed = try IndexedBackend()
        let clients = collection("clients", indexes: ["n"])
        try indexed.write((0..<100).map { .put("\($0)", #"{"n":\#($0)}"#) }, in: clients)
        let reader = try #require(indexed.backend.reader(forLoop: 0))
        let search = try LocalSearch(.all(.count), in: clients)
        try indexed.open(collection("clients", indexes: ["name"]))
        #expect {
            _ = try search.advance(with: reader, isAbandoned: { false })
        } throws: {
            ($0 as? CRUDError)?.code == .unavailable
        }
        reader.releaseSnapshot()
    }
}
