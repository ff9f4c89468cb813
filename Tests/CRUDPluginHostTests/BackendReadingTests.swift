import CRUDModel
import CRUDPluginABI
import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// Reads, by the backend's own threads and by event loops.
@Suite struct BackendReadingTests {
    @Test(arguments: [[], [.readsConcurrently]] as [Plugin.Capabilities])
    func findsWhatIsThere(capabilities: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: capabilities)
        let (clients, others) = (collection("clients"), collection("others"))
        try test.write(.put("a", "1", "r1"), .put("b", "", "r2"), in: clients)
        #expect(try test.read(["b", "x", "a", "b"], in: clients) == .records(["@r2", nil, "1@r1", "@r2"]))
        #expect(try test.read([], in: clients) == .records([]))
        #expect(try test.read(["a", "x"], withItems: false, in: clients) == .records(["@r1", nil]))
        #expect(try test.count(clients) == 2)
        #expect(try test.count(others) == 0)
        #expect(try test.read(["a"], in: others) == .records([nil]))
        #expect(try test.read(["a"], in: collection("clients")) == .records(["1@r1"]), "known by another loop")
        #expect(test.memory[.creations] == 1)
        #expect(test.memory[.breaches] == 0)
    }

    @Test func findsNoMoreThanIsWanted() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "12345", "r"), .put("b", "6", "r"), in: clients)
        #expect(try test.read(["a", "b"], maximumBytes: 8, in: clients) == .records(["12345@r", "6@r"]))
        #expect(try test.read(["a", "b"], maximumBytes: 7, in: clients) == .tooLong)
        #expect(try test.read(["a", "a"], maximumBytes: 11, in: clients) == .tooLong)
        #expect(try test.read(["a"], maximumBytes: 6, in: clients) == .records(["12345@r"]))
    }

    @Test(
        arguments: [
            (CRUDD_UNAVAILABLE, .unavailable), (CRUDD_CORRUPT, .corrupt), (CRUDD_INTERNAL, .internalError),
            (CRUDD_NOT_FOUND, .internalError),
        ] as [(Int, CRUDError.Code)])
    func aReadThatFailsSaysWhy(status: Int, code: CRUDError.Code) throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a"), in: clients)
        #expect(try test.read(["a", "call:\(status)"], in: clients) == .failed(code))
        #expect(test.backend.status.lastError == "private reason \(status)")
        #expect(test.backend.status.state == .ready)
        let reader = try #require(test.backend.reader(forLoop: 1))
        #expect(throws: CRUDError.self) {
            try reader.read(Array("call:\(status)".utf8).span, in: clients, into: TextSink())
        }
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
    }

    // MARK: Views

    @Test func aViewIsKeptUntilACommit() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1", "r1"), in: clients)
        let reader = try #require(test.backend.reader(forLoop: 0))
        let sink = TextSink()
        let id = Array("a".utf8)
        #expect(!reader.holdsSnapshot && !reader.isStale)
        for _ in 0..<3 { try reader.read(id.span, in: clients, into: sink) }
        #expect(reader.holdsSnapshot && !reader.isStale)
        #expect(test.memory[.snapshotsEnded] == 0)

        try test.write(.put("a", "2", "r2"), in: clients)
        #expect(reader.isStale)
        try reader.read(id.span, in: clients, into: sink)
        #expect(!reader.isStale)
        #expect(test.memory[.snapshotsEnded] == 1)
        #expect(sink.texts == ["1@r1", "1@r1", "1@r1", "2@r2"])
        #expect(try reader.count(clients) == 1)

        reader.endSnapshot()
        reader.endSnapshot()
        #expect(!reader.holdsSnapshot)
        #expect(test.memory[.snapshotsEnded] == 2, "a view ends once")
        #expect(test.memory[.breaches] == 0)
    }

    @Test func whatIsNotThereIsNotAskedFor() throws {
        let test = try TestBackend.opened()
        let reader = try #require(test.backend.reader(forLoop: 0))
        let sink = TextSink()
        try reader.read(Array("a".utf8).span, in: collection(), into: sink)
        #expect(try reader.count(collection()) == 0)
        #expect(sink.texts.isEmpty && !reader.holdsSnapshot)
        #expect(test.memory[.reads] == 0)
    }

    @Test func theBackendsOwnThreadsHoldNoView() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        try test.write(.put("a", "2"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["2@r"]))
        test.backend.stop()
        #expect(test.memory[.snapshotsEnded] == 2)
    }

    // MARK: At the same time

    @Test func readsDoNotWaitForAWriteWhereThePluginReadsConcurrently() throws {
        let test = try TestBackend.opened(capabilities: [.readsConcurrently], options: #"{"gated":1}"#)
        #expect(!test.backend.isReadOnLoops)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("a", "1")], in: clients, to: inbox)
        test.memory.pass()
        _ = try inbox.take()
        try test.memory.wait(for: .writeBegan)
        _ = test.submit([.put("a", "2")], in: clients, to: inbox)
        try test.memory.wait(for: .writeBegan)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        #expect(inbox.count == 0)
        test.memory.pass()
        _ = try inbox.take()
        #expect(try test.read(["a"], in: clients) == .records(["2@r"]))
    }

    /// The plugin itself counts every call that meets another one.
    @Test(arguments: [[], [.readsConcurrently]] as [Plugin.Capabilities])
    func thePluginIsCalledAsItAllows(capabilities: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: capabilities)
        let clients = collection()
        let threads = try (0..<4).map { number in
            try Thread(named: "submit") {
                for round in 0..<50 {
                    _ = try? test.write(.put("\(number)-\(round)"), in: clients)
                    _ = try? test.read(["\(number)-\(round)"], in: clients)
                    _ = try? test.count(clients)
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(try test.count(clients) == 200)
        test.backend.stop()
        #expect(test.memory[.breaches] == 0)
        #expect(test.memory[.mutations] == 200)
    }
}

/// Keeps what a reader finds, as `ITEM@REVISION`.
final class TextSink: RecordSink {
    private(set) var texts: [String] = []

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        texts.append("\(String(decoding: item, as: UTF8.self))@\(String(decoding: revision, as: UTF8.self))")
        return true
    }
}
