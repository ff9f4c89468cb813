import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// Pages of a feed beside writes whose outcome is not known.
@Suite struct ChangesTaskTests {
    private let test: TestBackend
    private let clients = BackendCollection(name: Array("c".utf8), format: .json, retention: .seconds(86400))
    /// The number of the last change so far.
    private let first: UInt64

    init() throws {
        test = try TestBackend.opened(capabilities: [.concurrentReads, .fastReads, .sequences])
        try test.write(.put("a", "1"), in: clients)
        // Once each record has a number, and the first trim is over, nothing comes between for a minute.
        let feed = try #require(clients.feed)
        let deadline = Deadline()
        while !feed.isComplete || test.plugin[.trims] < 2 || feed.history == nil {
            try #require(!deadline.hasPassed)
            poll(nil, 0, 10)
        }
        first = test.backend.feeds.confirmedMark
    }

    private func page(_ start: ChangesCursor.Start) throws -> ChangesTask {
        let inbox = try Inbox<WorkItem>()
        let request = ChangesTask.Request(
            ChangesQuery(), from: start, maximumBytes: 1 << 20, maximumItemBytes: 1 << 20, timeout: .seconds(30))
        let task = ChangesTask(request, in: clients, test.backend.feeds) { inbox.put($0) }
        test.backend.submit(.read(.task(task)))
        _ = try inbox.take()
        if let failure = task.failure { throw failure }
        return task
    }

    /// Writes, with an outcome that is not known, and waits until it is known to readers.
    private func write(_ change: Change) throws {
        let mark = test.backend.feeds.highWaterMark
        try test.write(change, in: clients)
        let deadline = Deadline()
        while test.backend.feeds.highWaterMark == mark {
            try #require(!deadline.hasPassed)
            poll(nil, 0, 10)
        }
    }

    /// A number that storage has not noted is given out again after a restart: with a cursor that ends at it a client
    /// would miss that change.
    @Test func cursorEndsAtWhatTheStorageHasNoted() throws {
        try write(.put("status:\(CRUDD_OUTCOME_UNKNOWN)", "2"))
        #expect(test.backend.feeds.highWaterMark == first + 1)
        let all = try page(.beginning)
        #expect(!all.changes.isEmpty && !all.hasMore)
        #expect(all.cursor.sequence == first)
        let now = try page(.now)
        #expect(now.changes.isEmpty && !now.hasMore)
        #expect(now.cursor.sequence == first)
    }

    /// What has been forgotten had a number that the storage had noted: "start" and "now" are not behind it.
    @Test func pagesBeginBehindWhatHasBeenForgotten() throws {
        try write(.put("status:\(CRUDD_OUTCOME_UNKNOWN)", "2"))
        let feed = try #require(clients.feed)
        feed.endTrimming(.init(identity: try #require(feed.history).identity, forgotten: first + 1))
        #expect(try page(.beginning).cursor.sequence == first + 1)
        #expect(try page(.now).cursor.sequence == first + 1)
    }

    /// The number of a change that can be read has been noted.
    @Test func cursorPassesAChangeOfUnknownOutcome() throws {
        let beginning = try page(.beginning)
        try write(.put("call:\(CRUDD_OUTCOME_UNKNOWN)", "2"))
        let now = try page(.now)
        #expect(now.changes.isEmpty && now.cursor.sequence == first)
        let second = try page(.cursor(beginning.cursor))
        #expect(String(decoding: second.changes, as: UTF8.self).contains("call:"))
        #expect(second.cursor.sequence == first + 1)
        try test.write(.put("b", "3"), in: clients)
        let third = try page(.cursor(second.cursor))
        #expect(third.cursor.sequence == first + 2 && !third.changes.isEmpty)
    }
}
