import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// A backend's life: opened, down and tried again, given up, stopped.
@Suite struct BackendOpeningTests {
    @Test func opensStorageOnce() throws {
        let test = try TestBackend()
        #expect(test.backend.status.state == .opening)
        #expect(test.backend.reader(forLoop: 0) == nil)
        #expect(try test.start() == nil)
        #expect(test.backend.status.state == .ready)
        #expect(test.backend.status.lastError == nil)
        #expect(test.plugin[.readers] == 3, "two loops and a reading thread")
        test.backend.stop()
        #expect(test.backend.status.state == .closed)
        #expect(test.plugin[.opens] == 1)
        #expect(test.plugin[.closes] == 1)
        #expect(test.plugin[.violations] == 0)
    }

    @Test func pluginWritesToLog() throws {
        let test = try TestBackend.opened()
        #expect(try test.log.wait(for: "scripted is open") == "warning: backend main: scripted is open")
    }

    @Test func optionsTakeCapabilitiesAway() throws {
        let test = try TestBackend(
            capabilities: [.concurrentReads, .durable], options: #"{"lacks":\#(CRUDD_IS_DURABLE)}"#)
        #expect(test.backend.capabilities == [.concurrentReads, .durable])
        #expect(try test.start() == nil)
        #expect(test.backend.capabilities == [.concurrentReads])
        #expect(test.backend.capabilities.names == ["concurrentReads"])
    }

    /// What the options have taken away is not used: the plugin counts calls that it has not allowed.
    @Test(arguments: [CRUDD_CAN_READ_FAST, CRUDD_CAN_READ_FAST | CRUDD_CAN_READ_CONCURRENTLY])
    func loopsDoNotReadWithoutFastReads(lacks: Int) throws {
        let test = try TestBackend.opened(options: #"{"lacks":\#(lacks)}"#)
        #expect(test.backend.reader(forLoop: 0) == nil)
        let isConcurrent = lacks == CRUDD_CAN_READ_FAST
        #expect(test.backend.hasReadQueues == isConcurrent)
        #expect(test.plugin[.readers] == (isConcurrent ? 1 : 0))
        let clients = collection()
        try test.write(.put("a"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        #expect(test.plugin[.violations] == 0)
    }

    /// What waits for a storage that can never be opened is refused, whatever else the thread has been woken for.
    @Test func finalFailureRefusesWhatIsQueued() throws {
        let test = try TestBackend(options: #"{"open_failures":1000,"open_status":\#(CRUDD_UNSUPPORTED)}"#)
        let inbox = try Inbox<WorkItem>()
        let batch = test.submit([.put("a")], in: collection(), to: inbox)
        test.backend.keep([])
        #expect(try test.start()?.isFinal == true)
        _ = try inbox.take()
        #expect(batch.failure?.code == .unavailable)
    }

    @Test func retriesUntilStorageIsAvailable() throws {
        let test = try TestBackend(options: #"{"open_failures":2,"open_status":\#(CRUDD_UNAVAILABLE)}"#)
        let clients = collection()
        let failure = try #require(try test.start())
        #expect(failure.status == CRUDD_UNAVAILABLE)
        #expect(!failure.isFinal)
        #expect(test.backend.status.state == .down)
        #expect(test.backend.status.lastError == failure.message)

        let write = try test.write(.put("a"), in: clients)
        #expect(write.failure?.code == .unavailable)
        #expect(write.failure?.message.contains(failure.message) == false, "a plugin's reasons are for the log")
        #expect(try test.read(["a"], in: clients) == .refused(.unavailable))

        _ = try test.log.wait(for: "backend main is open")
        #expect(test.backend.status.state == .ready)
        #expect(test.backend.status.lastError == nil)
        #expect(test.plugin[.opens] == 3)
        #expect(try test.write(.put("a"), in: clients).outcomeTexts == ["applied"])
        #expect(test.plugin[.mutations] == 1)
    }

    @Test func closesStorageWithoutReaders() throws {
        let test = try TestBackend(options: #"{"reader_failures":2}"#)
        #expect(try test.start()?.status == CRUDD_UNAVAILABLE)
        _ = try test.log.wait(for: "backend main is open")
        #expect(test.plugin[.opens] == 3)
        #expect(test.plugin[.closes] == 2)
        #expect(test.plugin[.violations] == 0)
    }

    @Test(arguments: [CRUDD_INVALID_OPTIONS, CRUDD_UNSUPPORTED])
    func finalFailureIsNotRetried(status: Int) throws {
        let test = try TestBackend(options: #"{"open_failures":9,"open_status":\#(status)}"#)
        let failure = try #require(try test.start())
        #expect(failure.isFinal)
        #expect(failure.pointer == (status == CRUDD_INVALID_OPTIONS ? "/open_status" : ""))
        #expect(try test.write(.put("a"), in: collection()).failure?.code == .unavailable)
        #expect(try test.read(["a"], in: collection()) == .refused(.unavailable))
        test.backend.stop()
        #expect(test.plugin[.opens] == 1)
        #expect(test.plugin[.closes] == 0)
    }

    // MARK: Stopping

    @Test func stopsWhileStorageIsNotAvailable() throws {
        let test = try TestBackend(options: #"{"open_failures":1000,"open_status":\#(CRUDD_UNAVAILABLE)}"#)
        #expect(try test.start() != nil)
        test.backend.stop()
        #expect(try test.write(.put("a"), in: collection()).failure?.code == .unavailable)
    }

    @Test func stoppingFinishesWhatIsQueued() throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        let first = test.submit([.put("a")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        let queued = (0..<10).map { test.submit([.put("\($0)")], in: clients, to: inbox) }
        let stopping = try Thread(named: "stop") { test.backend.stop() }
        test.plugin.pass(2)
        stopping.join()
        #expect(inbox.count == 11)
        #expect(([first] + queued).allSatisfy { $0.outcomeTexts == ["applied"] })
        #expect(test.plugin[.closes] == 1)
        #expect(try test.write(.put("late"), in: clients).failure?.code == .unavailable)
        #expect(try test.read(["a"], in: clients) == .refused(.unavailable))
    }

    /// Reloads close backends again and again.
    @Test func stoppedBackendIsReleased() throws {
        weak var backend: Backend?
        do {
            let test = try TestBackend.opened(capabilities: [.concurrentReads, .fastReads, .indexes])
            let clients = collection(indexes: ["n"])
            try test.write(.put("a", "{}"), in: clients)
            #expect(try test.read(["a"], in: clients) == .records(["{}@r"]))
            test.backend.stop()
            backend = test.backend
        }
        #expect(backend == nil)
    }

    // MARK: Waiting

    @Test func drainsOnceWhatIsQueuedHasBeenExecuted() throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#)
        #expect(test.backend.drain(within: .seconds(30)))
        #expect(test.plugin[.writes] == 0, "the plugin is not called")
        let inbox = try Inbox<WorkItem>()
        let write = test.submit([.put("a")], in: collection(), to: inbox)
        try test.plugin.wait(for: .writeBegan)
        #expect(!test.backend.drain(within: .milliseconds(20)))
        test.plugin.pass()
        #expect(test.backend.drain(within: .seconds(30)))
        #expect(write.outcomeTexts == ["applied"])
        test.backend.stop()
        #expect(test.backend.drain(within: .seconds(30)), "nothing is left that could be executed")
    }

    @Test func countsRecordsUnlessItTakesTooLong() throws {
        let test = try TestBackend.opened(capabilities: [], options: #"{"gated":1}"#)
        let clients = collection()
        test.plugin.pass()
        try test.write(.put("a"), .put("b"), in: clients)
        try test.plugin.wait(for: .writeBegan)
        #expect(test.backend.count(clients, within: .seconds(30)) == 2)
        #expect(test.backend.count(collection("missing"), within: .seconds(30)) == 0)
        #expect(test.backend.count(collection("open:\(CRUDD_CORRUPT)"), within: .seconds(30)) == nil)
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("c")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        #expect(test.backend.count(clients, within: .milliseconds(20)) == nil)
        test.plugin.pass()
        _ = try inbox.take()
        #expect(test.backend.count(clients, within: .seconds(30)) == 3)
    }

    @Test func pluginIsToldWhenBackendIsIdle() throws {
        let test = try TestBackend.opened()
        try test.plugin.wait(for: .idled)
        try test.write(.put("a"), in: collection())
        try test.plugin.wait(for: .idled)
        try test.plugin.wait(for: .idled)
        #expect(test.plugin[.violations] == 0)
    }
}
