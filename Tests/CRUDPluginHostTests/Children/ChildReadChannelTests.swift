import CRUDPluginABI
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDPluginHost

/// An event loop's own channel to a child, which is a real one; the test is the loop that moves the bytes.
@Suite struct ChildReadChannelTests {
    private let test: TestChild
    private let clients: Int
    private let channel: ChildReadChannel
    private let socket: Descriptor

    init() throws {
        test = try TestChild(.memory)
        let collection = try test.open()
        _ = try test.write(
            [.init(id: "a", item: "1", revision: "r1"), .init(id: "b", item: "22", revision: "r2")], in: collection)
        clients = test.child.number(of: collection)
        channel = try #require(test.child.makeReadChannel())
        socket = Descriptor(owning: channel.descriptor)
    }

    /// What came of bytes, in words: what the channel says, what it has sent, and the records.
    private func receive(_ bytes: [UInt8], isWanted: Bool = true) -> String {
        var words: [String] = []
        let reception = channel.receive(bytes.span) { sent in
            words.append(String(decoding: sent.withUnsafeBufferPointer { $0.dropFirst(8) }, as: UTF8.self))
        } _: { index, record in
            words.append("\(index)=\(record.item.text)@\(record.revision.text)")
            return isWanted
        }
        switch reception {
        case .incomplete(let total): words.append("\(bytes.count) of \(total)")
        case .part(let count, let restarts):
            words.append("\(restarts ? "part" : "unwanted part")\(count == bytes.count ? "" : " of \(count)")")
        case .complete(let count, let failure):
            words.append(count == bytes.count ? "complete" : "complete in \(count)")
            if let failure { words.append("\(failure.status) \(failure.message)") }
        case .violation: words.append("violation")
        }
        return words.joined(separator: " ")
    }

    /// Makes a request, and sends it unless what comes back is not the child's.
    private func request(_ ids: [String], withItems: Bool = true, sends: Bool = true) throws {
        let raw = RawBytes()
        let places = ids.map { raw($0) }
        channel.request(places.span, in: clients, withItems: withItems, now: CallContext.now) { bytes in
            guard sends else { return }
            #expect(bytes.withUnsafeBytes { send(socket.number, $0.baseAddress, $0.count, 0) } == bytes.count)
        }
        withExtendedLifetime(raw) {}
    }

    /// Gives the channel what the child sends, a byte more each time, until it is a frame.
    private func exchange(_ ids: [String], withItems: Bool = true) throws -> String {
        try request(ids, withItems: withItems)
        let deadline = Deadline()
        var reply: [UInt8] = []
        while true {
            try #require(try socket.wait(for: POLLIN, until: deadline) != 0)
            var byte: UInt8 = 0
            try #require(recv(socket.number, &byte, 1, 0) == 1)
            reply.append(byte)
            let words = receive(reply)
            guard words.hasPrefix("\(reply.count) of ") else { return words }
            let total = try #require(words.split(separator: " ").last.flatMap { Int($0) })
            try #require(total > reply.count)
        }
    }

    @Test func recordsAreRead() throws {
        #expect(try exchange(["x", "b", "a"]) == "1=22@r2 2=1@r1 complete")
        #expect(try exchange(["a"], withItems: false) == "0=@r1 complete")
        #expect(try exchange([]) == "complete")
        #expect(test.child.hasServed)
    }

    @Test func thereAreAsManyAsTheLoopsHave() throws {
        let channels = (0..<ChildCommand.channelsPerLoop).map { _ in test.child.makeReadChannel() }
        defer { for channel in channels { if let channel { close(channel.descriptor) } } }
        #expect(channels.map { $0 == nil } == [false, true])
    }

    @Test func aReplyMayComeInParts() throws {
        try request(["a", "b"], sends: false)
        let one = frame(#"{"id":1,"result":{"records":[{"index":1,"item":1,"revision":1}]},"more":true}"#, "7r")
        #expect(receive(one) == "1=7@r part")
        #expect(receive(frame(#"{"method":"progress","params":{"done":1,"total":2}}"#)) == "part")
        #expect(receive(frame(#"{"method":"state","params":{"up":false,"reason":"gone"}}"#)) == "part")
        #expect(try test.states.take() == "down: gone")
        #expect(receive(frame(#"{"method":"changed","params":{"name":"notes"}}"#)) == "part")
        #expect(try test.states.take() == "changed: notes")
        let last = frame(#"{"id":1,"error":{"status":"corrupt","message":"why"}}"#)
        #expect(receive(last + [0, 0]) == "complete in \(last.count) 7 why")
    }

    /// What is read beyond the caller's interest is passed over, and the child told so, once.
    @Test func aChildIsInterruptedOnce() throws {
        try request(["a", "b", "c"], sends: false)
        func part(_ index: Int, more: Bool = true) -> [UInt8] {
            frame(#"{"id":1,"result":{"records":[{"index":\#(index),"revision":1}]},"more":\#(more)}"#, "r")
        }
        #expect(receive(part(0)) == "0=@r part")
        #expect(receive(part(1), isWanted: false) == #"1=@r {"method":"interrupt"} unwanted part"#)
        #expect(receive(part(2), isWanted: false) == "unwanted part")
        #expect(receive(frame(#"{"method":"progress","params":{"done":1,"total":2}}"#)) == "unwanted part")
        #expect(receive(frame(#"{"id":1,"error":{"status":"interrupted"}}"#)) == "complete")
    }

    @Test(arguments: [
        "{}", "[]", #"{"id":2,"result":{"records":[]}}"#, #"{"id":1}"#,
        #"{"id":1,"result":{"records":[{"index":1,"revision":1}]}}"#,
        #"{"id":1,"result":{"records":[{"index":0,"revision":2}]}}"#, #"{"id":1,"result":{"records":[]}}"#,
    ])
    func violationsEndTheChild(head: String) throws {
        try request(["a"], sends: false)
        #expect(receive(frame(head, "r")) == "violation")
        #expect(test.child.loss?.contains("violated the child protocol and was killed: read: ") == true)
        #expect(try test.losses.take() == "lost")
    }

    @Test func aFrameThatIsTooLongEndsTheChild() throws {
        try request(["a"], sends: false)
        #expect(receive([0xFF, 0xFF, 0xFF, 0xFF]) == "violation")
        #expect(test.child.loss?.contains("where at most") == true)
    }

    @Test func aReplyToNothingEndsTheChild() throws {
        #expect(receive(frame(#"{"id":1,"result":{"records":[]}}"#)) == "violation")
        #expect(test.child.loss?.contains("which is not open") == true)
    }

    @Test func aChildThatTakesTooLongIsEnded() throws {
        channel.timedOut()
        #expect(test.child.loss?.contains("did not reply to read within") == true)
    }
}
