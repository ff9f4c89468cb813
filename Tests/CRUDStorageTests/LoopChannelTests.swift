import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// An event loop's own channels to a child, which is a real one; the test is the loop that moves the bytes.
@Suite struct LoopChannelTests {
    private let child: ChildBackend
    private let loop: TestLoop
    private let client: BackendClient
    private let clients: Collection

    init() throws {
        child = try ChildBackend()
        loop = try TestLoop()
        client = BackendClient(child.backend, loop: loop)
        clients = try Collection("clients", of: client)
        try child.write(.put("a", "1", "r1"), .put("b", "22", "r2"), in: clients.stored)
    }

    /// Makes a read in an iteration of its own.
    private func read(_ ids: String..., maximumBytes: Int = .max) -> TestCompletion {
        let completion = TestCompletion()
        clients.read(ids, maximumBytes: maximumBytes, for: completion)
        client.flush()
        return completion
    }

    /// The heads of the frames that the loop has sent.
    private func heads(_ transport: SocketTransport) -> [String] {
        func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
        var heads: [String] = []
        var rest = transport.sent[...]
        while rest.count >= FrameWriter.headerBytes {
            let frame = rest.prefix(FrameWriter.lengthBytes + number(rest.prefix(4)))
            let head = frame.dropFirst(FrameWriter.headerBytes).prefix(number(frame.dropFirst(4).prefix(4)))
            heads.append(String(decoding: head, as: UTF8.self))
            rest = rest.dropFirst(frame.count)
        }
        return heads
    }

    // MARK: Reading

    @Test func readIsOneRequestAndOneReply() throws {
        let completion = read("b", "x", "a", "b")
        #expect(completion.events.isEmpty && !client.isIdle)
        let transport = try #require(loop.transports.first)
        let head = try JSON(parsing: try #require(heads(transport).first))
        #expect(head["method"]?.string == "read")
        #expect(head["params"]?["ids"]?.elements?.count == 4)
        try transport.receiveFrame()
        #expect(completion.events == ["22@r2, none, 1@r1, 22@r2", "ended"])
        #expect(client.isIdle && loop.transports.count == 1)
        #expect(loop.wakeUps == 0 && loop.deliveredCount == 0)
    }

    @Test func frameIsAnnouncedBeforeItIsThere() throws {
        _ = read("a")
        let transport = loop.transports[0]
        let size = try transport.receiveFrame()
        #expect(transport.expectedBytes == size)
    }

    /// While both channels of a loop are busy, what comes waits for whichever is idle first, and shares its next call.
    @Test func waitingReadsShareACall() throws {
        let (first, second) = (read("a"), read("b"))
        let waiting = [read("b", "x"), read("a")]
        #expect(loop.transports.count == LoopChannel.perLoop)
        #expect(loop.transports.map { heads($0).count } == [1, 1])
        let transport = loop.transports[1]
        try transport.receiveFrame()
        #expect(second.events == ["22@r2", "ended"] && first.events.isEmpty)
        #expect(heads(transport).count == 2)
        #expect(try JSON(parsing: heads(transport)[1])["params"]?["ids"]?.elements?.count == 3)
        try transport.receiveFrame()
        #expect(waiting.map(\.events) == [["22@r2, none", "ended"], ["1@r1", "ended"]])
        try loop.transports[0].receiveFrame()
        #expect(first.events == ["1@r1", "ended"])
        #expect(client.isIdle)
    }

    /// Reads that do not share a call take turns with what comes later.
    @Test func readsDoNotWaitForManyLongOnesOfOthers() throws {
        let ids = Array(repeating: "a", count: 17)
        let long = (0..<LoopChannel.perLoop).flatMap { _ in
            let completions = (0..<3).map { _ in TestCompletion() }
            for completion in completions { clients.read(ids, for: completion) }
            client.flush()
            return completions
        }
        let short = read("b")
        let transport = loop.transports[0]
        try transport.receiveFrame()
        #expect(short.events.isEmpty && heads(transport).count == 2)
        try transport.receiveFrame()
        #expect(short.events == ["22@r2", "ended"])
        #expect(long.allSatisfy { $0.events.isEmpty })
        for transport in loop.transports {
            while heads(transport).count < 3 { try transport.receiveFrame() }
        }
        for transport in loop.transports { try transport.receiveFrame() }
        try transport.receiveFrame()
        #expect(long.allSatisfy { $0.events.last == "ended" } && client.isIdle)
    }

    @Test func withdrawnReadIsNotSent() throws {
        let busy = [read("a"), read("b")]
        let waiting = read("a")
        client.expire(at: .seconds(10))
        #expect(busy.map(\.events) == [["overdue: unavailable"], ["overdue: unavailable"]])
        #expect(waiting.events == ["overdue: unavailable", "ended"])
        for transport in loop.transports { try transport.receiveFrame() }
        #expect(busy.map { $0.events.last } == ["ended", "ended"])
        #expect(loop.transports.map { heads($0).count } == [1, 1])
        #expect(client.isIdle)
    }

    @Test func readsOfAFailedCallAreTriedAlone() throws {
        let requests = [["a"], ["call:\(CRUDD_CORRUPT)"], ["b"]].map { ids in
            let completion = TestCompletion()
            clients.read(ids, for: completion)
            return completion
        }
        client.flush()
        while !client.isIdle { try loop.transports[0].receiveFrame() }
        #expect(heads(loop.transports[0]).count == 4)
        #expect(requests.map(\.events) == [["1@r1", "ended"], ["corrupt", "ended"], ["22@r2", "ended"]])
        #expect(child.backend.status.state == .ready)
    }

    // MARK: Other ways

    @Test func channelsAreForReadsByIDOfOpenCollections() throws {
        let (count, unknown) = (TestCompletion(), TestCompletion())
        clients.count(for: count)
        client.flush()
        try loop.complete(by: client)
        #expect(count.events == ["2 records", "ended"])
        try Collection("unknown", of: client).read(["a"], for: unknown)
        client.flush()
        try loop.complete(by: client)
        #expect(unknown.events == ["none", "ended"])
        #expect(loop.transports.allSatisfy { heads($0).isEmpty })
    }

    /// A child has channels for the loops that there were when it was started.
    @Test func loopWithoutAChannelReadsByThreads() throws {
        let running = try #require(child.backend.child)
        let channels = (0..<ChildBackend.loopCount * LoopChannel.perLoop).map { _ in running.makeReadChannel() }
        defer { for case .some(let channel) in channels { close(channel.descriptor) } }
        #expect(channels.allSatisfy { $0 != nil })
        #expect(running.makeReadChannel() == nil)
        let completion = read("a")
        try loop.complete(by: client)
        #expect(completion.events == ["1@r1", "ended"])
        #expect(loop.transports.isEmpty)
    }

    // MARK: Messages of the child

    private func frame(_ body: (inout FrameWriter) -> Void) -> [UInt8] {
        var writer = FrameWriter()
        body(&writer)
        return writer.withBytes { bytes in bytes.withUnsafeBufferPointer { Array($0) } }
    }

    private func frame(head: String) -> [UInt8] {
        frame { writer in
            writer.begin()
            writer.raw(Array(head.utf8))
            writer.end()
        }
    }

    /// A part of the reply to the first request: the record of one id.
    private func reply(recordOf index: Int, hasMore: Bool) -> [UInt8] {
        var text = Array("1r".utf8)
        return text.withUnsafeMutableBufferPointer { text in
            var record = crudd_record.sized()
            record.item = crudd_bytes(UnsafeBufferPointer(rebasing: text[..<1]))
            record.revision = crudd_bytes(UnsafeBufferPointer(rebasing: text[1...]))
            return frame { writer in
                writer.beginReply(to: 1)
                writer.raw(Array(#""records":["#.utf8))
                writer.record(record, at: index, withItem: true)
                writer.raw(Array("]".utf8))
                writer.endReply(hasMore: hasMore)
            }
        }
    }

    @Test func childIsToldOnceThatNobodyWantsTheRest() throws {
        let completion = read("a", "b", "c", maximumBytes: 3)
        let transport = loop.transports[0]
        transport.receive(reply(recordOf: 0, hasMore: true))
        #expect(heads(transport).count == 1)
        transport.receive(reply(recordOf: 1, hasMore: true))
        #expect(heads(transport).last == #"{"method":"interrupt"}"#)
        transport.receive(reply(recordOf: 2, hasMore: true))
        #expect(completion.events.isEmpty)
        transport.receive(reply(recordOf: 2, hasMore: false))
        #expect(completion.events == ["too long", "ended"])
        #expect(heads(transport).count == 2)
    }

    @Test func replyMayComeInSeveralFramesAtOnce() throws {
        let completion = read("a", "b")
        loop.transports[0].receive(reply(recordOf: 1, hasMore: true) + reply(recordOf: 0, hasMore: false))
        #expect(completion.events == ["1@r, 1@r", "ended"])
    }

    @Test func stateIsReportedOverAnyChannel() throws {
        let completion = read("a")
        let transport = loop.transports[0]
        transport.receive(frame(head: #"{"method":"state","params":{"up":false,"reason":"it is gone"}}"#))
        #expect(child.backend.status.state == .down)
        #expect(child.backend.status.lastError == "it is gone")
        transport.receive(frame(head: #"{"method":"state","params":{"up":true,"reason":"it is back"}}"#))
        #expect(child.backend.status.state == .ready)
        try transport.receiveFrame()
        #expect(completion.events == ["1@r1", "ended"])
    }

    @Test(arguments: [
        "{}", "[]", "", #"{"id":2,"result":{"records":[]}}"#, #"{"id":1}"#,
        #"{"id":1,"result":{"records":[{"index":0,"revision":1,"item":1}]}}"#,
        #"{"id":1,"result":{"records":[{"index":-1,"revision":0,"item":0}]}}"#,
        #"{"id":1,"result":{"records":[]},"error":{"status":"corrupt"}}"#,
    ])
    func violationOfTheProtocolEndsTheChild(head: String) throws {
        let completion = read("a")
        let waiting = [read("b"), read("a")]
        loop.transports[0].receive(frame(head: head))
        #expect(!loop.transports[0].isOpen)
        #expect(completion.events == ["unavailable", "ended"])
        #expect(loop.wakeUps > 0, "the iteration may have handed over already what it has gathered")
        #expect(try child.log.wait(for: "violated the child protocol").contains("read"))
        // The other channel ends with the child; what has waited goes to the backend's threads, and to the next child.
        try loop.transports[1].waitForEnd()
        #expect(waiting[0].events == ["unavailable", "ended"])
        try loop.complete(by: client)
        #expect(waiting[1].events.last == "ended")
    }

    @Test func recordThatWasNotAskedForIsAViolation() throws {
        let completion = read("a")
        loop.transports[0].receive(reply(recordOf: 1, hasMore: false))
        #expect(completion.events == ["unavailable", "ended"])
    }

    @Test func replyToNothingIsAViolation() throws {
        _ = read("a")
        let transport = loop.transports[0]
        try transport.receiveFrame()
        transport.receive(frame(head: #"{"id":1,"result":{"records":[]}}"#))
        #expect(!transport.isOpen)
        _ = try child.log.wait(for: "violated the child protocol")
    }

    // MARK: Time-outs

    /// The loop may be the one that is late, so that an overdue reply is looked for in one more iteration.
    @Test func replyIsOverdueAfterTheCallTimeout() throws {
        let completion = read("a")
        let transport = loop.transports[0]
        #expect(transport.timer == .seconds(10))
        loop.now = .seconds(10)
        transport.fireTimer()
        #expect(transport.timer == .zero && transport.isOpen)
        transport.fireTimer()
        #expect(completion.events == ["unavailable", "ended"] && !transport.isOpen)
        _ = try child.log.wait(for: "did not reply to read within")
    }

    @Test func timerLooksAtTheReplyThatIsOutstandingNow() throws {
        _ = read("a")
        let transport = loop.transports[0]
        try transport.receiveFrame()
        loop.now = .seconds(7)
        let second = read("b")
        loop.now = .seconds(10)
        transport.fireTimer()
        #expect(transport.timer == .seconds(7))
        // A message of progress gives the call its time again.
        loop.now = .seconds(12)
        transport.receive(frame(head: #"{"method":"progress","params":{"done":1,"total":2}}"#))
        loop.now = .seconds(17)
        transport.fireTimer()
        #expect(transport.timer == .seconds(5))
        loop.now = .seconds(22)
        transport.fireTimer()
        #expect(transport.timer == .zero)
        try transport.receiveFrame()
        #expect(second.events == ["22@r2", "ended"])
        transport.fireTimer()
        #expect(transport.timer == nil && transport.isOpen, "nothing is outstanding")
    }

    // MARK: The end

    @Test func childThatIsLostEndsItsChannels() throws {
        let pid = try #require(child.backend.status.pid)
        let completion = read("a")
        #expect(kill(pid, SIGKILL) == 0)
        try loop.transports[0].waitForEnd()
        #expect(completion.events == ["unavailable", "ended"])
        _ = try child.log.wait(for: "backend main is open")
        _ = try child.log.wait(for: "backend main is open")
        let next = read("a")
        try loop.complete(by: client)
        #expect(next.events == ["none", "ended"], "the scripted plugin forgets its records")
        #expect(child.backend.status.restarts == 1)
    }

    /// Its sockets are closed with it.
    @Test func closedChildIsReleased() throws {
        weak var running: Child?
        do {
            let child = try ChildBackend()
            let client = BackendClient(child.backend, loop: loop)
            let clients = try Collection("clients", of: client)
            try child.write(.put("c"), in: clients.stored)
            let completion = TestCompletion()
            clients.read(["c"], for: completion)
            client.flush()
            try loop.transports[0].receiveFrame()
            #expect(completion.events == ["1@r", "ended"])
            running = child.backend.child
            #expect(running != nil)
            child.backend.stop()
            try loop.removeTransports()
        }
        #expect(running == nil)
    }

    /// A reload may take the backend away before the loop has seen the end of its channel.
    @Test func channelMayOutliveItsClient() throws {
        var client: BackendClient? = BackendClient(child.backend, loop: loop)
        let completion = TestCompletion()
        if let client {
            let clients = try Collection("clients", of: client)
            try child.write(.put("c"), in: clients.stored)
            clients.read(["c"], for: completion)
            client.flush()
            try loop.transports[0].receiveFrame()
            client.quiesce()
        }
        #expect(completion.events == ["1@r", "ended"])
        client = nil
        let transport = loop.transports[0]
        transport.receive(frame(head: #"{"method":"progress","params":{"done":1,"total":2}}"#))
        transport.fireTimer()
        transport.close()
        #expect(!transport.isOpen)
    }

    @Test func quiescingWaitsForWhatIsOutstandingOnly() throws {
        let busy = [read("a"), read("b")]
        let waiting = read("a")
        client.quiesce()
        #expect(!client.isQuiescent)
        try loop.complete(by: client)
        #expect(waiting.events == ["1@r1", "ended"], "a thread of the backend has read it")
        try loop.transports[0].receiveFrame()
        let later = read("b")
        #expect(!client.isQuiescent)
        try loop.transports[1].receiveFrame()
        #expect(client.isQuiescent, "what has begun since does not count")
        #expect(busy.map(\.events) == [["1@r1", "ended"], ["22@r2", "ended"]])
        #expect(later.events.isEmpty)
        try loop.transports[0].receiveFrame()
        #expect(later.events == ["22@r2", "ended"])
    }
}
