import CRUDTestSupport
import Testing

/// A peer that does not read, or asks for too much at once, slows itself and nobody else.
@Suite struct BackPressureTests {
    private static let large = "\"" + String(repeating: "x", count: 60_000) + "\""

    @Test func aPeerThatDoesNotReadIsNotReadFrom() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 1MiB\nitem_bytes: 256KiB\nsession_bytes: 4MiB"))
        let witness = try daemon.connect()
        #expect(try witness.create("c", "large", Self.large).result != nil)
        let before = try daemon.residentBytes
        let connection = try daemon.connect()
        let request = Connection.request("record.read", Connection.params("c", "large"), id: "1")
        let count = 20_000
        let bytes = Array(repeatElement(Connection.frame(request), count: count).joined())
        let sent = try connection.sendUntilBlocked(bytes)
        #expect(sent < bytes.count, "the daemon took \(count) requests whose replies nobody reads")
        #expect(try daemon.residentBytes - before < 32 << 20)
        #expect(try witness.create("c", "a", "1").result != nil)
        #expect(try witness.item("c", "a") == "1")

        // Reading again sets it free: every reply comes, whole.
        let last = sent / (bytes.count / count)
        try connection.send(bytes[sent..<min(bytes.count, (last + 1) * (bytes.count / count))])
        let replies = try connection.finish()
        #expect(replies.count == last + 1)
        #expect(replies.allSatisfy { $0.result?["item"]?.text == Self.large })
        #expect(try daemon.residentBytes - before < 32 << 20)
    }

    /// Replies that need no backend count as any other.
    @Test(arguments: ["rpc.discover", "collection.list", "daemon.metrics"])
    func repliesOfTheDaemonItselfAreCharged(method: String) throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 1MiB\nitem_bytes: 256KiB\nsession_bytes: 2MiB"))
        let witness = try daemon.connect()
        let names = (0..<200).map { "collection \(String(repeating: "x", count: 100)) \($0)" }
        #expect(
            try witness.pipeline(names.map { ("record.create", Connection.params($0, "a", item: "1")) })
                .allSatisfy { $0.result != nil })
        let before = try daemon.residentBytes
        let connection = try daemon.connect()
        let request = Connection.frame(Connection.request(method, id: "1"))
        let bytes = Array(repeatElement(request, count: 20_000).joined())
        let sent = try connection.sendUntilBlocked(bytes, timeout: .milliseconds(200))
        #expect(sent < bytes.count, "the daemon took all requests although nobody reads the replies")
        #expect(try daemon.residentBytes - before < 16 << 20)
        // On a busy machine it takes the requests later.
        let deadline = Deadline()
        var held = 0
        while held < 1 << 19 {
            try #require(!deadline.hasPassed, "\(held)")
            let sessions = try witness.call("session.list").result?["sessions"]?.elements
            held = sessions?.compactMap { $0["heldBytes"]?.integer }.max() ?? 0
        }
        #expect(held < 4 << 20)
        #expect(try witness.isUsable())
    }

    @Test(arguments: [1, 4])
    func manyPeersThatDoNotReadStayWithinTheBuffers(loops: Int) throws {
        let daemon = try Daemon(
            Configuration(
                limits: "frame_bytes: 1MiB\nitem_bytes: 256KiB\nsession_bytes: 4MiB\nbuffer_bytes: 16MiB",
                loops: loops))
        let witness = try daemon.connect()
        #expect(try witness.create("c", "large", Self.large).result != nil)
        let before = try daemon.residentBytes
        let request = Connection.frame(Connection.request("record.read", Connection.params("c", "large"), id: "1"))
        let bytes = Array(repeatElement(request, count: 2000).joined())
        let sleepers = try (0..<20).map { _ in try daemon.connect() }
        for sleeper in sleepers { _ = try sleeper.sendUntilBlocked(bytes, timeout: .milliseconds(50)) }
        #expect(try daemon.residentBytes - before < 48 << 20)
        #expect(try witness.create("c", "a", "1").result != nil)
        #expect(try daemon.connect().item("c", "a") == "1")
        for sleeper in sleepers { sleeper.close() }
        #expect(try witness.isUsable())
    }

    @Test(arguments: [1, 4])
    func manyHalfFramesStayWithinTheBuffersAndBlockNobody(loops: Int) throws {
        let daemon = try Daemon(
            Configuration(
                limits: "frame_bytes: 1MiB\nitem_bytes: 256KiB\nsession_bytes: 2MiB\nbuffer_bytes: 8MiB", loops: loops))
        let witness = try daemon.connect()
        #expect(try witness.create("c", "a", "1").result != nil)
        let before = try daemon.residentBytes
        let half = Connection.header(1 << 20) + [UInt8](repeating: 0x20, count: 1 << 20 - 1)
        let sleepers = try (0..<30).map { _ in try daemon.connect() }
        for sleeper in sleepers { _ = try sleeper.sendUntilBlocked(half, timeout: .milliseconds(50)) }
        #expect(try daemon.residentBytes - before < 32 << 20)
        #expect(try witness.item("c", "a") == "1")
        #expect(try daemon.connect().item("c", "a") == "1")
        for sleeper in sleepers { sleeper.close() }
        #expect(try witness.isUsable())
    }

    @Test(arguments: [1, 2, 256])
    func requestsInFlightAreBoundedAndNoneIsRefused(inflight: Int) throws {
        let daemon = try Daemon(Configuration(limits: "inflight_per_session: \(inflight)"))
        let connection = try daemon.connect()
        let replies = try connection.pipeline(
            (0..<1000).map { ("record.create", Connection.params("c", "\($0)", item: "\($0)")) })
        #expect(replies.count { $0.result != nil } == 1000)
        let reads = try connection.pipeline((0..<1000).map { ("record.read", Connection.params("c", "\($0)")) })
        for (number, reply) in reads.enumerated() { #expect(reply.result?["item"]?.integer == number) }
    }

    @Test func aBusySessionDoesNotKeepTheTurn() throws {
        let daemon = try Daemon()
        let busy = try daemon.connect()
        let witness = try daemon.connect()
        let pings = Array(
            repeatElement(Connection.frame(Connection.request("daemon.ping", id: "1")), count: 2000).joined())
        for _ in 0..<20 {
            _ = try busy.sendSome(pings[...])
            #expect(try witness.isUsable())
            try busy.takeIn()
            while try busy.bufferedFrame() != nil {}
        }
    }
}
