import CRUDTestSupport
import Testing

/// Frames, however they are cut, and what comes of bytes that are none.
@Suite(.daemon) struct FramingTests {
    private let create = Connection.request(
        "record.upsert", Connection.params("framed", "a", item: #"{"é":"😀"}"#), id: "1")

    @Test func aFrameMayBeSplitAnywhere() throws {
        let connection = try Daemon.shared.connect()
        let witness = try Daemon.shared.connect()
        let frame = Connection.frame(create)
        for boundary in 1..<frame.count {
            try connection.send(frame[..<boundary])
            // By the time of this reply the daemon has received the first part.
            #expect(try witness.isUsable())
            try connection.send(frame[boundary...])
            #expect(try connection.receive().result != nil, "split at \(boundary)")
        }
    }

    @Test func aFrameMayComeByteByByte() throws {
        let connection = try Daemon.shared.connect()
        let witness = try Daemon.shared.connect()
        for byte in Connection.frame(create) + Connection.frame(Connection.request("daemon.ping", id: "2")) {
            try connection.send([byte])
            #expect(try witness.isUsable())
        }
        let replies = try [connection.receive(), connection.receive()]
        #expect(Set(replies.map(\.id.text)) == ["1", "2"])
        #expect(replies.allSatisfy { $0.result != nil })
    }

    @Test func manyFramesMayComeAtOnce() throws {
        let connection = try Daemon.shared.connect()
        let replies = try connection.pipeline((0..<5000).map { _ in ("daemon.ping", "{}") })
        #expect(replies.allSatisfy { $0.result?.text == "{}" })
    }

    @Test func manyFramesAndPartOfOneMayComeAtOnce() throws {
        let connection = try Daemon.shared.connect()
        let ping = Connection.frame(Connection.request("daemon.ping", id: "1"))
        for cut in [1, 3, 4, 5, ping.count - 1] {
            try connection.send(ping + ping + ping[..<cut])
            for _ in 0..<2 { #expect(try connection.receive().result != nil) }
            try connection.send(ping[cut...])
            #expect(try connection.receive().result != nil)
        }
    }

    @Test func aFrameOfLengthZeroIsAParseError() throws {
        let connection = try Daemon.shared.connect()
        try connection.send(Connection.header(0) + Connection.header(0))
        for _ in 0..<2 {
            let reply = try connection.receive()
            #expect(reply.error?.name == "parse_error")
            #expect(reply.id.isNull)
        }
        #expect(try connection.isUsable())
    }

    @Test(arguments: [16 << 20 + 1, 1 << 31, UInt32.max] as [UInt32])
    func aFrameThatIsTooLongEndsTheConnection(length: UInt32) throws {
        let witness = try Daemon.shared.connect()
        let connection = try Daemon.shared.connect()
        let before = (0..<10).flatMap { Connection.frame(Connection.request("daemon.ping", id: "\($0)")) }
        try connection.send(before + Connection.header(length) + Array("{\"jsonrpc\"".utf8))
        var pings: Set<String> = []
        for _ in 0..<10 {
            let reply = try connection.receive()
            #expect(reply.result?.text == "{}")
            pings.insert(reply.id.text)
        }
        #expect(pings.count == 10)
        try expectTooLong(connection, maximum: 16 << 20)
        #expect(try witness.isUsable())
    }

    /// What its peer is told last is which requests were executed: those before the frame, and none behind it.
    @Test func theErrorOfAFrameThatIsTooLongComesLast() throws {
        let daemon = try Daemon(Configuration(collections: #""*": {backend: main, changes: true}"#))
        let connection = try daemon.connect()
        #expect(try connection.upsert("followed", "x", "1").result != nil)
        let now = try connection.call("collection.changes", #"{"collection":"followed","after":"now"}"#)
        let cursor = try #require(now.result?["cursor"]?.string)
        let waiting = Connection.request(
            "collection.changes", #"{"collection":"followed","after":"\#(cursor)","wait":300}"#, id: "100")
        // Each waits for the disk.
        let writes = (0..<10).map {
            Connection.request("record.upsert", Connection.params("c\($0)", "x", item: "1"), id: "\($0)")
        }
        let before = ([waiting] + writes).flatMap { Connection.frame($0) }
        let behind = Connection.request("record.upsert", Connection.params("c", "behind", item: "1"), id: "101")
        try connection.send(before + Connection.header(16 << 20 + 1) + Connection.frame(behind))
        var replied: Set<Int> = []
        for _ in 0..<11 {
            let reply = try connection.receive()
            #expect(reply.result != nil)
            if let id = reply.id.integer { replied.insert(id) }
        }
        #expect(replied == Set(0..<10).union([100]))
        try expectTooLong(connection, maximum: 16 << 20)
        #expect(try daemon.connect().exists("c", "behind") == false)
    }

    @Test func theBodyOfATooLongFrameIsNotBuffered() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.isUsable())
        let before = try daemon.residentBytes
        try connection.send(Connection.header(200 << 20))
        _ = try connection.sendUntilBlocked([UInt8](repeating: 0x20, count: 64 << 20))
        let witness = try daemon.connect()
        #expect(try witness.isUsable())
        #expect(try daemon.residentBytes - before < 16 << 20)
        try expectTooLong(connection, maximum: 16 << 20)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\"}\n",
        "*1\r\n$4\r\nPING\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{FC}",
    ])
    func anotherProtocolIsTurnedAway(text: String) throws {
        let connection = try Daemon.shared.connect()
        try connection.send(Array(text.utf8))
        try expectTooLong(connection, maximum: 16 << 20)
        #expect(try Daemon.shared.connect().isUsable())
    }

    @Test func invalidJSONInFramesHasAReply() throws {
        let connection = try Daemon.shared.connect()
        var state: UInt64 = 42
        for length in 1..<200 {
            let body = (0..<length).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 56) | 0x80
            }
            try connection.sendFrame(body)
            #expect(try connection.receive().error?.name == "parse_error")
        }
        #expect(try connection.isUsable())
    }

    @Test func aFrameOfTheGreatestLengthIsServed() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        let request = Connection.request("daemon.ping", id: "1")
        for (length, fits) in [(65535, true), (65536, true), (65537, false)] {
            let padding = String(repeating: " ", count: length - request.utf8.count)
            try connection.sendFrame(request + padding)
            if fits {
                #expect(try connection.receive().result?.text == "{}")
            } else {
                try expectTooLong(connection, maximum: 65536)
            }
        }
    }

    /// The last reply: `limit_exceeded` without an id, then the end.
    private func expectTooLong(_ connection: Connection, maximum: Int) throws {
        let reply = try connection.receive()
        #expect(reply.id.isNull)
        #expect(reply.error?.name == "limit_exceeded")
        #expect(reply.error?.details?["limit"]?.string == "frame_bytes")
        #expect(reply.error?.details?["maximum"]?.integer == maximum)
        #expect(try connection.receiveFrame() == nil)
    }
}
