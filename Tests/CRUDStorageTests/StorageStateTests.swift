import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// A plugin whose storage is lost, and reached again.
@Suite struct StorageStateTests {
    @Test(arguments: [[], [.concurrentReads], [.concurrentReads, .fastReads]] as [Plugin.Capabilities])
    func requestsAreUnavailableWhileStorageIsDown(capabilities: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: capabilities)
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        let (reads, writes) = (test.plugin[.reads], test.plugin[.writes])

        test.plugin.report(isUp: false)
        #expect(test.backend.status.state == .down)
        #expect(test.backend.status.lastError == "scripted")
        _ = try test.log.wait(for: "error: backend main is down: scripted")
        let write = try test.write(.put("a", "2"), in: clients)
        #expect(write.failure?.code == .unavailable)
        #expect(write.failure?.message.contains("scripted") == false, "a plugin's reasons are for the log")
        #expect(try test.read(["a"], in: clients) == .refused(.unavailable))
        #expect(test.count(clients) == nil)
        #expect(test.plugin[.reads] == reads && test.plugin[.writes] == writes && test.plugin[.counts] == 0)

        test.plugin.report(isUp: true)
        #expect(test.backend.status.state == .ready)
        #expect(test.backend.status.lastError == nil)
        _ = try test.log.wait(for: "notice: backend main is up again: scripted")
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        #expect(try test.write(.put("a", "2"), in: clients).outcomeTexts == ["replaced"])
    }

    /// What may have been written before an outage is in the feeds after it, however long it has lasted.
    @Test func feedsReachAMutationOfUnknownOutcomeAfterAnOutage() throws {
        let test = try TestBackend.opened()
        try test.write(.put("call:\(CRUDD_OUTCOME_UNKNOWN)", "1"), in: collection())
        test.plugin.report(isUp: false)
        // More often than a plugin is told that nothing is to be done.
        for _ in 0..<4 { try test.plugin.wait(for: .idled) }
        test.plugin.report(isUp: true)
        let deadline = Deadline()
        while test.backend.feeds.highWaterMark == 0 { try #require(!deadline.hasPassed) }
    }

    /// So it is where the backend is never idle, though nothing else is written.
    @Test func feedsReachAMutationOfUnknownOutcomeBesideOtherWork() throws {
        let test = try TestBackend.opened()
        try test.write(.put("call:\(CRUDD_OUTCOME_UNKNOWN)", "1"), in: collection())
        let deadline = Deadline()
        while test.backend.feeds.highWaterMark == 0 {
            try #require(!deadline.hasPassed)
            let other = try test.write(.put("call:\(CRUDD_NO_SPACE)"), in: collection())
            #expect(other.outcomeTexts == ["refused no_space"])
        }
    }

    /// The loop's own reads do not ask the plugin either.
    @Test func loopDoesNotReadWhileStorageIsDown() throws {
        let test = try TestBackend.opened(loops: 1)
        let loop = try TestLoop()
        let client = BackendClient(test.backend, loop: loop)
        let clients = Collection(name: Array("clients".utf8), rule: try CollectionRule("clients"), client: client)
        try test.write(.put("a", "1"), in: clients.stored)
        let visitor = TextVisitor()
        let id = Array("a".utf8)
        #expect(try client.store.readNow(id.span, in: clients.stored, into: visitor))
        let reads = test.plugin[.reads]

        test.plugin.report(isUp: false)
        #expect(try !client.store.readNow(id.span, in: clients.stored, into: visitor))
        let completion = TestCompletion()
        clients.read(["a"], for: completion)
        client.flush()
        try loop.complete(by: client)
        #expect(completion.events == ["unavailable", "ended"])
        #expect(test.plugin[.reads] == reads)

        test.plugin.report(isUp: true)
        #expect(try client.store.readNow(id.span, in: clients.stored, into: visitor))
        #expect(visitor.texts == ["1@r", "1@r"])
    }

    @Test func queuedItemsAreRefused() throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        let first = test.submit([.put("a")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let second = test.submit([.put("b")], in: clients, to: inbox)
        test.plugin.report(isUp: false)
        test.plugin.pass()
        for _ in 0..<2 { _ = try inbox.take() }
        #expect(first.outcomeTexts == ["applied"])
        #expect(second.failure?.code == .unavailable)
        #expect(test.plugin[.writes] == 1)
    }

    /// Once a second, and only that.
    @Test func pluginReconnectsWhenToldThatItIsIdle() throws {
        let test = try TestBackend.opened(options: #"{"recovers_after":2}"#)
        let clients = collection()
        test.plugin.report(isUp: false)
        _ = try test.log.wait(for: "notice: backend main is up again: scripted is back")
        #expect(test.plugin[.idles] >= 2)
        #expect(try test.write(.put("a"), in: clients).outcomeTexts == ["applied"])
        #expect(test.plugin[.violations] == 0)
    }

    @Test func storageMayBeDownAsItIsOpened() throws {
        let test = try TestBackend(options: #"{"open_down":1,"recovers_after":1}"#)
        #expect(try test.start() == nil)
        #expect(test.backend.status.state == .down)
        #expect(test.backend.status.lastError == "scripted is down")
        #expect(try test.write(.put("a"), in: collection()).failure?.code == .unavailable)
        _ = try test.log.wait(for: "notice: backend main is up again: scripted is back")
        #expect(test.backend.status.state == .ready)
    }

    /// A write within which the storage is lost has its own outcome.
    @Test func storageMayBeLostDuringAWrite() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        #expect(try test.write(.put("down:1"), in: clients).outcomeTexts == ["applied"])
        #expect(test.backend.status.state == .down)
        #expect(try test.write(.put("up:1"), in: clients).failure?.code == .unavailable)
        test.plugin.report(isUp: true)
        #expect(try test.read(["down:1"], in: clients) == .records(["1@r"]))
    }

    @Test func sameStateIsLoggedOnce() throws {
        let test = try TestBackend.opened()
        for _ in 0..<3 { test.plugin.report(isUp: false) }
        for _ in 0..<3 { test.plugin.report(isUp: true) }
        test.backend.stop()
        var lines: [String] = []
        while test.log.count > 0 { lines.append(try test.log.take()) }
        #expect(lines.count { $0.contains("is down") } == 1)
        #expect(lines.count { $0.contains("is up again") } == 1)
    }
}
