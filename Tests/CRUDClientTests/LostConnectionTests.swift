import CRUDClient
import ScriptedDaemon
import Testing

/// Calls whose connection is lost, whose deadline passes or whose task is cancelled.
@Suite struct LostConnectionTests {
    @Test func sendsReadsAgainWhoseReplyWasLost() async throws {
        let daemon = try ScriptedDaemon { listener in
            let first = try listener.accept()
            let lost = try first.requests(3)
            first.close()
            let second = try listener.accept()
            let again = try second.requests(3)
            for request in again { try second.reply(to: request, #"{"exists":true}"#) }
            try second.awaitClosing()
            return (lost.map(\.text).sorted(), again.map(\.text).sorted())
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("things")
        try await withThrowingTaskGroup { group in
            for id in ["a", "b", "c"] {
                group.addTask {
                    let exists = try await repository.exists(id: id)
                    #expect(exists)
                }
            }
            try await group.waitForAll()
        }
        await repository.client.close()
        let (lost, again) = try await daemon.finish()
        #expect(lost == again)
    }

    @Test func saysThatTheOutcomeOfAWriteIsUnknown() async throws {
        let daemon = try ScriptedDaemon { listener in
            let first = try listener.accept()
            _ = try first.request()
            first.close()
            let second = try listener.accept()
            let next = try second.request()
            try second.reply(to: next, "{}")
            try second.awaitClosing()
            return next.method
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let error = await #expect(throws: CRUDError.self) {
            try await client.repository("things").create(id: "x", item: 1)
        }
        #expect(error?.code == .outcomeUnknown)
        try await client.ping()
        await client.close()
        // The write was not sent twice.
        #expect(try await daemon.finish() == "daemon.ping")
    }

    /// An increment, whether alone or in a batch, would count twice if it were sent twice.
    @Test func neverSendsAnIncrementTwice() async throws {
        let daemon = try ScriptedDaemon { listener in
            var methods: [String] = []
            for _ in 0..<3 {
                let peer = try listener.accept()
                methods.append(try peer.request().method)
                peer.close()
            }
            let last = try listener.accept()
            let next = try last.request()
            try last.reply(to: next, "{}")
            try last.awaitClosing()
            return methods + [next.method]
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let store = client.repository("things")
        var operations = FieldOperations()
        operations.increment("n", by: 1)
        let increment = operations
        let calls: [() async throws -> Void] = [
            { try await store.patch(id: "x", applying: increment, as: [String: Int].self) },
            { try await store.batch([RecordOperation(.apply(increment), id: "x")]) },
            { try await Repository<[String: Int]>(store).transaction { $0.apply(increment, id: "x") } },
        ]
        for call in calls {
            let error = await #expect(throws: CRUDError.self) { try await call() }
            #expect(error?.code == .outcomeUnknown)
        }
        try await client.ping()
        await client.close()
        #expect(try await daemon.finish() == ["record.patch", "record.batch", "record.batch", "daemon.ping"])
    }

    /// A client whose daemon stops at the gate, after it has noticed that.
    private func orphan(path: String, gone: Gate) async throws -> CRUDClient {
        let client = try await CRUDClient.connect(path: path)
        gone.open()
        while true {
            let error = await #expect(throws: CRUDError.self) {
                try await CRUDClient.withDeadline(in: .milliseconds(50)) { try await client.ping() }
            }
            #expect(error?.code == .timedOut)
            if error?.message.contains("cannot connect to the daemon") == true { return client }
        }
    }

    private static func goAway(_ listener: ScriptedListener, _ gone: Gate) throws {
        let peer = try listener.accept()
        try gone.pass()
        listener.stop()
        peer.close()
    }

    @Test func callsMadeMeanwhileWaitForTheDaemonToComeBack() async throws {
        let (gone, back) = (Gate(), Gate())
        let daemon = try ScriptedDaemon { listener in
            try Self.goAway(listener, gone)
            try back.pass()
            try listener.listen()
            let second = try listener.accept()
            try second.reply(to: try second.request(), #"{"revision":"7"}"#)
            try second.awaitClosing()
        }
        let client = try await orphan(path: daemon.path, gone: gone)
        async let revision = client.repository("things").create(id: "x", item: 1)
        back.open()
        #expect(try await revision == Revision("7"))
        await client.close()
        try await daemon.finish()
    }

    @Test func aCallThatNeverLeftIsUnavailableAtItsDeadline() async throws {
        let gone = Gate()
        let daemon = try ScriptedDaemon { listener in
            try Self.goAway(listener, gone)
        }
        let client = try await orphan(path: daemon.path, gone: gone)
        try await daemon.finish()
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .milliseconds(30)) {
                try await client.repository("things").create(id: "x", item: 1)
            }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.cause is DeadlineExceeded)
        #expect(error?.message.contains(daemon.path) == true)
    }

    @Test func aCallThatWasCancelledBeforeItLeftIsNeverSent() async throws {
        let (gone, back) = (Gate(), Gate())
        let daemon = try ScriptedDaemon { listener in
            try Self.goAway(listener, gone)
            try back.pass()
            try listener.listen()
            let second = try listener.accept()
            let request = try second.request()
            try second.reply(to: request, "{}")
            try second.awaitClosing()
            return request.method
        }
        let client = try await orphan(path: daemon.path, gone: gone)
        let create = Task { try await client.repository("things").create(id: "x", item: 1) }
        create.cancel()
        await #expect(throws: CancellationError.self) { try await create.value }
        back.open()
        try await client.ping()
        await client.close()
        #expect(try await daemon.finish() == "daemon.ping")
    }

    @Test func aCallThatWasCancelledAfterItLeftIsGivenUp() async throws {
        let received = Signal()
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try peer.requests(2)
            received.send()
            try gate.pass()
            // The late replies must have no effect.
            for request in requests { try peer.reply(to: request, #"{"exists":true,"revision":"1"}"#) }
            try peer.reply(to: try peer.request(), "{}")
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let read = Task { try await client.repository("things").exists(id: "x") }
        let write = Task { try await client.repository("things").create(id: "x", item: 1) }
        await received.wait()
        read.cancel()
        write.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        let error = await #expect(throws: CRUDError.self) { try await write.value }
        #expect(error?.code == .outcomeUnknown)
        gate.open()
        try await client.ping()
        await client.close()
        try await daemon.finish()
    }

    @Test func anOverdueCallIsGivenUp() async throws {
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try peer.requests(2)
            try gate.pass()
            for request in requests { try peer.reply(to: request, #"{"exists":true,"revision":"1"}"#) }
            try peer.reply(to: try peer.request(), "{}")
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let repository = client.repository("things")
        await CRUDClient.withDeadline(in: .seconds(5)) {
            let read = Task { try await repository.exists(id: "x") }
            let write = Task { try await repository.create(id: "x", item: 1) }
            let readError = await #expect(throws: CRUDError.self) { try await read.value }
            #expect(readError?.code == .timedOut)
            #expect(readError?.cause is DeadlineExceeded)
            let writeError = await #expect(throws: CRUDError.self) { try await write.value }
            #expect(writeError?.code == .outcomeUnknown)
            #expect(writeError?.cause is DeadlineExceeded)
        }
        gate.open()
        try await client.ping()
        await client.close()
        try await daemon.finish()
    }

    @Test func theEarlierOfTwoDeadlinesHolds() async throws {
        let daemon = try ScriptedDaemon { listener in
            try listener.accept().drain()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        await CRUDClient.withDeadline(in: .milliseconds(20)) {
            await CRUDClient.withDeadline(in: .seconds(3600)) {
                let error = await #expect(throws: CRUDError.self) { try await client.ping() }
                #expect(error?.cause is DeadlineExceeded)
            }
        }
        await client.close()
        try await daemon.finish()
    }

    @Test func aDeadlineThatHasPassedSendsNothing() async throws {
        let daemon = try ScriptedDaemon { try $0.accept().awaitClosing() }
        let client = try await CRUDClient.connect(path: daemon.path)
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .zero) { try await client.repository("x").delete(id: "x") }
        }
        #expect(error?.code == .timedOut)
        await client.close()
        try await daemon.finish()
    }

    @Test func closingFailsWhatIsInFlight() async throws {
        let received = Signal()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.requests(2)
            received.send()
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let read = Task { try await client.repository("things").exists(id: "x") }
        let write = Task { try await client.repository("things").create(id: "x", item: 1) }
        await received.wait()
        await client.close()
        let readError = await #expect(throws: CRUDError.self) { try await read.value }
        #expect(readError?.code == .unavailable)
        let writeError = await #expect(throws: CRUDError.self) { try await write.value }
        #expect(writeError?.code == .outcomeUnknown)
        try await daemon.finish()
    }
}
