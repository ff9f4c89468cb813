import CRUDClient
import CRUDTestSupport
import ScriptedDaemon
import Synchronization
import Testing

/// How many calls a client has pending, and those that wait for that.
@Suite(.timeLimit(.minutes(10))) struct PendingCallTests {
    /// An item that counts how often one is encoded.
    private struct Counted: Encodable {
        let counter: Counter

        func encode(to encoder: any Encoder) throws {
            counter.encoded.add(1, ordering: .relaxed)
            var container = encoder.singleValueContainer()
            try container.encode(String(repeating: "x", count: 4096))
        }
    }

    private final class Counter: Sendable {
        let encoded = Atomic(0)
        let ended = Atomic(0)
    }

    /// Before, every one of them was encoded, and kept until its deadline: 8 KiB each.
    @Test func callsOfAStoppedDaemonAreBounded() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.request()
            try peer.drain()
        }
        let client = try await CRUDClient.connect(path: daemon.path, options: .init(maximumPendingCalls: 20))
        let things = client.repository("things")
        let counter = Counter()
        // One deadline for all, however long a busy machine takes to begin them.
        await CRUDClient.withDeadline(in: .seconds(5)) {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<2_000 {
                    group.addTask {
                        let error = await #expect(throws: CRUDError.self) {
                            try await things.create(id: "\(number)", item: Counted(counter: counter))
                        }
                        #expect(error?.code == .timedOut || error?.code == .outcomeUnknown)
                        #expect(error?.cause is DeadlineExceeded)
                        counter.ended.add(1, ordering: .relaxed)
                    }
                }
            }
        }
        #expect(counter.ended.load(ordering: .relaxed) == 2_000)
        // The first ones, and those that were admitted when these had ended by their deadline.
        #expect(counter.encoded.load(ordering: .relaxed) < 1_000)
        await client.close()
        try await daemon.finish()
    }

    /// On a busy machine a call may begin before another one that is made some time earlier.
    @Test func thoseThatWaitAreAdmittedInTheirOrder() async throws {
        var ids: [String] = []
        for milliseconds in [20, 200, 2000] where ids != ["first", "a", "b", "c"] {
            ids = try await admitted(pause: .milliseconds(milliseconds))
        }
        #expect(ids == ["first", "a", "b", "c"])
    }

    /// The ids of calls in the order in which the daemon receives them, made with pauses in between.
    private func admitted(pause: Duration) async throws -> [String] {
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try gate.pass()
            var ids: [String] = []
            while let request = try? peer.request() {
                ids.append(request.strings["id"] ?? "")
                try peer.reply(to: request, #"{"exists":true}"#)
            }
            return ids
        }
        let client = try await CRUDClient.connect(path: daemon.path, options: .init(maximumPendingCalls: 1))
        let things = client.repository("things")
        var tasks: [Task<Bool, any Error>] = []
        for id in ["first", "a", "b", "cancelled", "c"] {
            let begun = Signal()
            tasks.append(
                Task {
                    begun.send()
                    return try await things.exists(id: id)
                })
            await begun.wait()
            try await Task.sleep(for: pause)
        }
        let cancelled = tasks.remove(at: 3)
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .milliseconds(30)) { try await things.exists(id: "late") }
        }
        #expect(error?.code == .timedOut && error?.message.contains("maximumPendingCalls") == true)
        gate.open()
        for task in tasks { #expect(try await task.value) }
        await client.close()
        return try await daemon.finish()
    }

    /// A call that is begun later fails, and so do those that are pending where the end is cancelled.
    @Test(arguments: [false, true])
    func aGracefulEndWaitsForPendingCalls(isCancelled: Bool) async throws {
        let pending = Signal()
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try peer.requests(2)
            pending.send()
            try gate.pass()
            if !isCancelled { for request in requests { try peer.reply(to: request, #"{"exists":true}"#) } }
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path, options: .init(maximumPendingCalls: 2))
        let things = client.repository("things")
        let calls = ["a", "b"].map { id in Task { try await things.exists(id: id) } }
        await pending.wait()
        let end = Task { await client.closeGracefully() }
        // There is no room for another call, and after the beginning of the end none is admitted.
        var code: CRUDError.Code?
        repeat {
            let error = await #expect(throws: CRUDError.self) {
                try await CRUDClient.withDeadline(in: .milliseconds(5)) { try await client.ping() }
            }
            code = error?.code
        } while code == .timedOut
        #expect(code == .unavailable)
        if isCancelled { end.cancel() } else { gate.open() }
        for call in calls {
            if isCancelled {
                let error = await #expect(throws: CRUDError.self) { try await call.value }
                #expect(error?.code == .unavailable)
            } else {
                #expect(try await call.value)
            }
        }
        await end.value
        gate.open()
        try await daemon.finish()
    }

    /// Calls use all connections, each of which has sessions and limits of its own.
    @Test func aClientMayHaveSeveralConnections() async throws {
        let daemon = try Daemon(Configuration(collections: "\"*\": {backend: main, changes: true}"))
        let client = try await CRUDClient.connect(
            path: daemon.socketPath, options: .init(name: "several", connections: 3))
        let things = client.repository("things")
        try await withThrowingTaskGroup { group in
            for number in 0..<300 {
                group.addTask {
                    try await things.create(id: "\(number)", item: number)
                    #expect(try await things.read(id: "\(number)") == number)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await things.count(.all) == 300)
        let sessions = try JSON(parsing: await client.call("session.list"))["sessions"]?.elements ?? []
        #expect(sessions.filter { $0["client"]?.string == "several" }.count == 3)
        var changes = things.changes(after: .start).makeAsyncIterator()
        #expect(try await changes.next() != nil)
        await client.close()
        let error = await #expect(throws: CRUDError.self) { try await things.count(.all) }
        #expect(error?.code == .unavailable)
    }
}
