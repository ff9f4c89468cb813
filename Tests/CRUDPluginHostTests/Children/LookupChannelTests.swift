import CRUDModel
import CRUDTestSupport
import Glibc
import Logging
import Testing

@testable import CRUDPluginHost

/// An event loop's own channel to a child, which is a real one; the test is the loop that moves the bytes.
@Suite struct LookupChannelTests {
    private let isolated: IsolatedBackend
    private let clients = collection("clients")

    private var backend: Backend { isolated.backend }

    init() throws {
        isolated = try IsolatedBackend()
        try isolated.write(.put("a", "1", "r1"), .put("b", "22", "r2"), in: clients)
    }

    private func channel() throws -> LookupChannel { try #require(backend.lookupChannel()) }

    /// A batch with one read for each list of ids.
    private func batch(
        _ reads: [String]..., maximumBytes: Int = .max, deliver: @escaping @Sendable (WorkItem) -> Void = { _ in }
    ) -> ReadBatch {
        let batch = ReadBatch(deliver: deliver)
        for ids in reads {
            let places = ids.map { batch.store(Array($0.utf8).span) }
            batch.append(Read(.records(places), in: clients, maximumBytes: maximumBytes))
        }
        return batch
    }

    /// Sends a request and gives the channel what comes back, a byte more each time, until it is a frame.
    private func exchange(_ request: [UInt8], over channel: LookupChannel) throws {
        #expect(send(channel.descriptor, request, request.count, 0) == request.count)
        let deadline = Deadline()
        var reply: [UInt8] = []
        while true {
            guard try Descriptor.wait(for: [(channel.descriptor, POLLIN)], until: deadline)[0] != 0 else {
                throw Failure("no reply")
            }
            var byte: UInt8 = 0
            guard recv(channel.descriptor, &byte, 1, 0) == 1 else { throw Failure("the channel has ended") }
            reply.append(byte)
            switch channel.receive(reply.span) {
            case .incomplete(let size): try #require(size > reply.count)
            case .frame(let size):
                #expect(size == reply.count)
                return
            case .frameAnsweredWith, .nonsense: throw Failure("not a reply: \(String(decoding: reply, as: UTF8.self))")
            }
        }
    }

    /// What the channel makes of a frame with this text.
    private func receive(_ text: String, on channel: LookupChannel) -> String {
        let bytes = Connection.frame(text)
        return switch channel.receive(bytes.span) {
        case .incomplete: "incomplete"
        case .frame(let size): size == bytes.count ? "frame" : "part of a frame"
        case .frameAnsweredWith(_, let answer): String(decoding: answer.dropFirst(4), as: UTF8.self)
        case .nonsense: "nonsense"
        }
    }

    @Test func whatIsTakenUpTogetherIsOneCall() throws {
        let channel = try channel()
        defer { channel.close() }
        let batches = [batch(["a"]), batch(["b", "x"]), batch(["b"])]
        #expect(!channel.isBusy && channel.nextRequest() == nil)
        channel.takeUp([batches[0]])
        let first = try #require(channel.nextRequest())
        #expect(channel.isBusy)
        #expect(channel.nextRequest() == nil, "one call at a time")
        try exchange(first, over: channel)
        #expect(channel.takeAnswered().map(ObjectIdentifier.init) == [ObjectIdentifier(batches[0])])
        #expect(!channel.isBusy)

        channel.takeUp(Array(batches.dropFirst()))
        let second = try #require(channel.nextRequest())
        try exchange(second, over: channel)
        #expect(channel.takeAnswered().map(ObjectIdentifier.init) == batches.dropFirst().map(ObjectIdentifier.init))
        #expect(channel.nextRequest() == nil)
        #expect(
            try batches.map(FoundTexts.init)
                == [.records(["1@r1"]), .records(["22@r2", nil]), .records(["22@r2"])])
    }

    @Test func whatHasBeenGivenUpIsNotTakenUp() throws {
        let channel = try channel()
        defer { channel.close() }
        let batch = batch(["a"])
        #expect(batch.expire())
        channel.takeUp([batch])
        #expect(!channel.isBusy && channel.nextRequest() == nil)
    }

    @Test func whatFailsTogetherIsTriedOneByOne() throws {
        let channel = try channel()
        defer { channel.close() }
        let batch = batch(["a"], ["call:7"], ["b"])
        channel.takeUp([batch])
        var calls = 0
        while let request = channel.nextRequest() {
            try exchange(request, over: channel)
            calls += 1
        }
        #expect(calls == 4)
        #expect(channel.takeAnswered().count == 1)
        #expect(
            batch.results.map { if case .failed(let error) = $0 { error.code.name } else { "found" } }
                == ["found", "corrupt", "found"])
        #expect(backend.status.state == .ready)
    }

    @Test func whatIsNoLookupGoesAnotherWay() throws {
        let channel = try channel()
        defer { channel.close() }
        let count = ReadBatch { _ in }
        count.append(Read(.count, in: clients))
        #expect(!channel.admits(count))
        let inbox = try Inbox<WorkItem>()
        let unknown = ReadBatch { inbox.put($0) }
        unknown.append(Read(.records([]), in: collection("unknown")))
        #expect(!channel.admits(unknown), "the child has not opened it")
        channel.takeUp([unknown])
        #expect(!channel.isBusy)
        #expect(try inbox.take() === unknown)
    }

    @Test func aChildHasNoMoreThanItWasStartedWith() throws {
        let channels = (0..<IsolatedBackend.loopCount * LookupChannel.perLoop + 1).map { _ in backend.lookupChannel() }
        defer { for channel in channels { channel?.close() } }
        #expect(channels.map { $0 == nil } == Array(repeating: false, count: channels.count - 1) + [true])
    }

    @Test func theChildIsToldOnceThatNobodyWantsTheRest() throws {
        let channel = try channel()
        defer { channel.close() }
        let batch = batch(["a", "b", "c"], maximumBytes: 3)
        channel.takeUp([batch])
        #expect(channel.nextRequest() != nil)
        func part(_ index: Int, more: Bool) -> String {
            #"{"id":1,"result":{"records":[{"index":\#(index),"revision":"r","item":1}]},"more":\#(more)}"#
        }
        #expect(receive(part(0, more: true), on: channel) == "frame")
        #expect(receive(part(1, more: true), on: channel) == #"{"method":"interrupt"}"#)
        #expect(receive(part(2, more: true), on: channel) == "frame")
        #expect(channel.isBusy && channel.takeAnswered().isEmpty)
        #expect(receive(part(2, more: false), on: channel) == "frame")
        #expect(channel.takeAnswered().count == 1)
        #expect(try FoundTexts(batch) == .tooLong)
    }

    @Test(arguments: [
        "{}", "[]", #"{"id":2,"result":{"records":[]}}"#, #"{"id":1}"#,
        #"{"id":1,"result":{"records":[{"index":1,"revision":"r","item":1}]}}"#,
        #"{"id":1,"result":{"records":[{"index":-1,"revision":"r","item":1}]}}"#,
        #"{"id":1,"result":{"records":[]},"error":{"status":"corrupt"}}"#,
    ])
    func nonsenseEndsTheChildAndTheCall(text: String) throws {
        let channel = try channel()
        defer { channel.close() }
        let batch = batch(["a"])
        channel.takeUp([batch])
        #expect(channel.nextRequest() != nil)
        #expect(receive(text, on: channel) == "nonsense")
        #expect(channel.end().map(ObjectIdentifier.init) == [ObjectIdentifier(batch)])
        #expect(try FoundTexts(batch) == .failed(.unavailable))
        #expect(try isolated.log.wait(for: "talks nonsense").contains("read"))
    }

    @Test func aReplyToNothingIsNonsense() throws {
        let channel = try channel()
        defer { channel.close() }
        #expect(receive(#"{"id":1,"result":{"records":[]}}"#, on: channel) == "nonsense")
        #expect(try isolated.log.wait(for: "talks nonsense").contains("a reply to nothing"))
        #expect(channel.end().isEmpty)
    }
}

/// A backend over the scripted plugin in a child, stopped when nobody holds it any more.
private final class IsolatedBackend: Sendable {
    static let loopCount = 2

    let backend: Backend
    let log: Inbox<String>
    private let directory: TemporaryDirectory

    init() throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=CRUDD_CAN_READ_CONCURRENTLY"],
            to: "\(directory.path)/scripted.so")
        let lines = try Inbox<String>()
        log = lines
        let logger = Logger(label: "test") { _ in LogInbox(lines: lines) }
        let command = ChildCommand(
            backend: "main", program: .plugin("scripted", directories: [directory.path]), sha256: nil,
            limits: ChildCommand.Limits(), loopCount: Self.loopCount, home: directory.path,
            launcher: try BuildProducts.path(of: "crudd-plugin-host"))
        let options = Array("{}".utf8)
        backend = Backend(
            name: "main", plugin: try Plugin.inChild(command, options: options, logger: logger).plugin,
            options: options, loopCount: Self.loopCount, logger: logger, admission: { _ in nil })
        let outcome = try Inbox<PluginFailure?>()
        try backend.start { outcome.put($0) }
        if let failure = try outcome.take() { throw failure }
    }

    deinit { backend.stop() }

    func write(_ changes: Change..., in collection: BackendCollection) throws {
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch { inbox.put($0) }
        for change in changes { batch.append(change, in: collection) }
        backend.submit(batch)
        _ = try inbox.take()
        guard batch.outcomeTexts.allSatisfy({ $0 == "applied" }) else { throw Failure("\(batch.outcomeTexts)") }
    }
}
