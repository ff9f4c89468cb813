import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// Deletions of the records that match.
@Suite struct BulkDeleteTests {
    private let loop: TestLoop

    init() throws { loop = try TestLoop() }

    private func opened(options: String = "{}") throws -> (TestBackend, BackendClient, Collection) {
        let test = try TestBackend.opened(capabilities: [.concurrentReads], options: options)
        let client = BackendClient(test.backend, loop: loop)
        return (test, client, try Collection("clients", of: client))
    }

    private func submit(
        in collection: Collection, for completion: TestCompletion, _ change: (inout Query) -> Void = { _ in }
    ) -> BulkDelete {
        let task = BulkDelete(of: .all(.query, change), in: collection.stored, deliver: collection.client.deliver)
        collection.client.submit(task, for: completion)
        collection.client.flush()
        return task
    }

    @Test func deletesWhatMatches() throws {
        let (test, client, clients) = try opened()
        try test.write(
            .put("a", #"{"n":1}"#), .put("b", #"{"n":2}"#), .put("c", #"{"n":2}"#), .put("d", "{"), in: clients.stored)
        let filter = try Filter(cql2Text: "n = 2")
        let completion = TestCompletion()
        let task = submit(in: clients, for: completion) { $0.filter = filter }
        try loop.complete(by: client)
        #expect(completion.events == ["2 deleted", "ended"])
        #expect(task.corrupt == [Array("d".utf8)])
        #expect(
            try test.read(["a", "b", "c", "d"], in: clients.stored)
                == .records([#"{"n":1}@r"#, nil, nil, "{@r"]))
        #expect(test.plugin[.violations] == 0)
    }

    @Test func deletesInSeveralCalls() throws {
        let (test, client, clients) = try opened()
        try test.backend.write((0..<1000).map { .put("\($0)") }, in: clients.stored)
        let completion = TestCompletion()
        _ = submit(in: clients, for: completion) { $0.prefix = Array("1".utf8) }
        try loop.complete(by: client)
        #expect(completion.events == ["111 deleted", "ended"])
        let all = TestCompletion()
        _ = submit(in: clients, for: all)
        try loop.complete(by: client)
        #expect(all.events == ["889 deleted", "ended"])
        #expect(test.count(clients.stored) == 0)
        #expect(test.plugin[.writes] >= 1 + 1 + 4)
    }

    @Test func missingCollectionIsEmpty() throws {
        let (test, client, clients) = try opened()
        let completion = TestCompletion()
        _ = submit(in: clients, for: completion)
        try loop.complete(by: client)
        #expect(completion.events == ["0 deleted", "ended"])
        #expect(test.plugin[.writes] == 0)
    }

    // MARK: Failures

    /// One that cannot be removed does not keep the others; what has been deleted stays so.
    @Test func recordThatCannotBeRemovedIsAnErrorAtTheEnd() throws {
        let indexed = try IndexedBackend()
        let client = BackendClient(indexed.backend, loop: loop)
        let clients = try Collection("clients", of: client)
        try indexed.write([.put("a"), .put("stuck 1"), .put("stuck 2"), .put("z")], in: clients.stored)
        let completion = TestCompletion()
        let task = submit(in: clients, for: completion)
        try loop.complete(by: client)
        #expect(completion.events == ["outcome_unknown", "ended"])
        #expect(task.count == 2)
        #expect(task.failure?.details.deleted == 2)
        #expect(try indexed.ids(RecordScan(.id), in: clients.stored) == ["stuck 1", "stuck 2"])

        let nothing = TestCompletion()
        _ = submit(in: clients, for: nothing)
        try loop.complete(by: client)
        #expect(nothing.events == ["no_space", "ended"], "nothing has been deleted")
    }

    /// Where one record fails the whole call, the others are removed one by one.
    @Test func recordThatFailsTheCallDoesNotKeepTheOthers() throws {
        let indexed = try IndexedBackend()
        let client = BackendClient(indexed.backend, loop: loop)
        let clients = try Collection("clients", of: client)
        try indexed.write([.put("a"), .put("broken"), .put("c")], in: clients.stored)
        let completion = TestCompletion()
        let task = submit(in: clients, for: completion)
        try loop.complete(by: client)
        #expect(completion.events == ["outcome_unknown", "ended"])
        #expect(task.failure?.details.deleted == 2)
        #expect(try indexed.ids(RecordScan(.id), in: clients.stored) == ["broken"])
    }

    // MARK: The end

    /// What has begun and takes too long stops after the call that is in progress.
    @Test func overdueDeletionStops() throws {
        let (test, client, clients) = try opened(options: #"{"gated":1}"#)
        test.plugin.pass()
        try test.backend.write((0..<600).map { .put("\($0)") }, in: clients.stored)
        try test.plugin.wait(for: .writeBegan)
        let completion = TestCompletion()
        let task = submit(in: clients, for: completion)
        try test.plugin.wait(for: .writeBegan)
        client.expire(at: .seconds(10))
        #expect(completion.events == ["overdue: outcome_unknown"])
        #expect(completion.error?.details.deleted == 0)
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(completion.events == ["overdue: outcome_unknown", "ended"])
        #expect(task.count == 256)
        #expect(test.count(clients.stored) == 344)
    }

    /// A client that has gone away has asked for it all the same.
    @Test func deletionOfAClientThatHasGoneIsExecuted() throws {
        let (test, client, clients) = try opened(options: #"{"gated":1}"#)
        test.plugin.pass()
        try test.backend.write((0..<600).map { .put("\($0)") }, in: clients.stored)
        try test.plugin.wait(for: .writeBegan)
        let completion = TestCompletion()
        completion.isWanted = false
        _ = submit(in: clients, for: completion)
        try test.plugin.wait(for: .writeBegan)
        client.expire(at: .seconds(1))
        test.plugin.pass(3)
        try loop.complete(by: client)
        #expect(completion.events == ["600 deleted", "ended"])
    }

    @Test(arguments: [true, false])
    func lossOfStorageAndStoppingEndDeletions(isStopped: Bool) throws {
        let (test, client, clients) = try opened(options: #"{"gated":1}"#)
        test.plugin.pass()
        try test.backend.write((0..<600).map { .put("\($0)") }, in: clients.stored)
        try test.plugin.wait(for: .writeBegan)
        let completion = TestCompletion()
        _ = submit(in: clients, for: completion)
        try test.plugin.wait(for: .writeBegan)
        if isStopped { test.backend.writes.close() } else { test.plugin.report(isUp: false) }
        test.plugin.pass()
        try loop.complete(by: client)
        #expect(completion.events == ["outcome_unknown", "ended"], "some records were deleted before")
        #expect(test.plugin[.writes] == 2)
    }
}
