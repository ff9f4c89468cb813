import CRUDTestSupport
import Testing

/// The limits on one request and its reply.
@Suite struct LimitTests {
    @Test(arguments: [("", 128), ("json_depth: 8", 8), ("json_depth: 1000", 1000)])
    func itemsNestSoDeepAndNoDeeper(limits: String, depth: Int) throws {
        let daemon = try Daemon(Configuration(limits: limits.isEmpty ? nil : limits))
        let connection = try daemon.connect()
        for (open, inside, close) in [("[", "", "]"), (#"{"a":"#, "1", "}"), (#"[{"a":"#, "[]", "}]")] {
            let levels = open.count { "[{".contains($0) }
            let inner = inside.count { "[{".contains($0) }
            let item = { (depth: Int) in
                let count = (depth - inner) / levels
                return String(repeating: open, count: count) + inside + String(repeating: close, count: count)
            }
            let fits = depth - (depth - inner) % levels
            #expect(try connection.upsert("c", "a", item(fits)).result != nil)
            #expect(try connection.item("c", "a") == item(fits))
            let reply = try connection.create("c", "deep", item(fits + levels))
            #expect(reply.error?.name == "limit_exceeded")
            #expect(reply.error?.details?["limit"]?.string == "json_depth")
            #expect(reply.error?.details?["maximum"]?.integer == depth)
            #expect(try connection.exists("c", "deep") == false)
        }
    }

    @Test(arguments: [129, 1000, 100_000, 1_000_000])
    func absurdDepthIsSurvived(depth: Int) throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let item = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        for frame in [
            Connection.request("record.create", Connection.params("c", "a", item: item), id: "7"),
            #"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","extra":"#
                + String(repeating: #"{"a":"#, count: depth + 2) + "1" + String(repeating: "}", count: depth + 2) + "}",
        ] {
            try connection.sendFrame(frame)
            let reply = try connection.receive()
            #expect(reply.error?.name == "limit_exceeded")
            #expect(reply.error?.details?["limit"]?.string == "json_depth")
            #expect(reply.id.text == "7")
        }
        #expect(try connection.isUsable())
        #expect(try connection.exists("c", "a") == false)
    }

    @Test func itemsAreSoLongAndNoLonger() throws {
        let daemon = try Daemon(Configuration(limits: "item_bytes: 1KiB"))
        let connection = try daemon.connect()
        let fitting = "\"" + String(repeating: "x", count: 1022) + "\""
        let over = "\"" + String(repeating: "x", count: 1023) + "\""
        #expect(try connection.create("c", "a", fitting).result != nil)
        #expect(try connection.item("c", "a") == fitting)
        let replies = try [
            connection.create("c", "b", over), connection.update("c", "a", over), connection.upsert("c", "a", over),
            connection.upsert("c", "b", over),
        ]
        for reply in replies {
            #expect(reply.error?.code == -32007)
            #expect(reply.error?.details?["limit"]?.string == "item_bytes")
            #expect(reply.error?.details?["maximum"]?.integer == 1024)
        }
        #expect(try connection.item("c", "a") == fitting)
        #expect(try connection.exists("c", "b") == false)
    }

    @Test func theDefaultItemLimitIsFourMebibytes() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let fitting = "\"" + String(repeating: "x", count: 4 << 20 - 2) + "\""
        #expect(try connection.create("c", "a", fitting).result != nil)
        #expect(try connection.item("c", "a") == fitting)
        let error = try connection.create("c", "b", "\"x" + fitting.dropFirst()).error
        #expect(error?.details?["limit"]?.string == "item_bytes")
        #expect(error?.details?["maximum"]?.integer == 4 << 20)
    }

    @Test func noReplyIsLongerThanAFrame() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        let item = "\"" + String(repeating: "x", count: 30_000) + "\""
        for id in ["a", "b", "c"] { #expect(try connection.create("c", id, item).result != nil) }
        #expect(try connection.readMany("c", ["a", "b"]).result?["records"]?.elements?.count == 2)
        let error = try connection.readMany("c", ["a", "b", "c"]).error
        #expect(error?.name == "limit_exceeded")
        #expect(error?.details?["limit"]?.string == "frame_bytes")
        #expect(error?.details?["maximum"]?.integer == 65536)

        let reads = ["a", "b", "c"].map {
            Connection.request("record.read", Connection.params("c", $0), id: "\"\($0)\"")
        }
        try connection.sendFrame("[\(reads.joined(separator: ","))]")
        let frame = try #require(try connection.receiveFrame())
        #expect(frame.count <= 65536)
        #expect(String(decoding: frame, as: UTF8.self).contains("limit_exceeded"))
        #expect(try connection.isUsable())
    }

    /// What an error quotes of a request is cut. Neither the request's id nor the replies to others of its array are
    /// lost.
    @Test func anErrorIsNeverLong() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        let long = String(repeating: "é", count: 31_000)
        let filter = #"{"collection":"c","filter":{"op":"\#(long)","args":[]}}"#
        for (method, params, name) in [
            ("daemon.ping", #"{"\#(long)":1}"#, "invalid_params"), ("record.query", filter, "invalid_query"),
        ] {
            let request = Connection.request(method, params, id: "7")
            try connection.sendFrame(request)
            let reply = try connection.receive()
            #expect(reply.id.integer == 7 && reply.error?.name == name, "\(reply)")
            let write = Connection.request("record.upsert", Connection.params("c", name, item: "1"), id: "1")
            try connection.sendFrame("[\(write),\(request)]")
            let replies = try connection.receiveBatch()
            #expect(replies.first { $0.id.integer == 1 }?.result != nil)
            #expect(replies.first { $0.id.integer == 7 }?.error?.name == name)
        }
    }

    /// The limit is told, not the room that was left of it.
    @Test func aLimitIsToldAsItIsConfigured() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        for id in ["a", "b", "c"] {
            let item = #"{"n":"\#(String(repeating: "x", count: 30_000))"}"#
            #expect(try connection.create("c", id, item).result != nil)
        }
        let error = try connection.call(
            "record.query", #"{"collection":"c","sort":[{"property":"n"}],"limit":2}"#
        ).error
        #expect(error?.details?["limit"]?.string == "frame_bytes" && error?.details?["maximum"]?.integer == 65536)
    }

    @Test func aReplyThatWouldBeTooLongIsNotGatheredEither() throws {
        let daemon = try Daemon(Configuration())
        let connection = try daemon.connect()
        let ids = (0..<100).map(String.init)
        let item = "\"" + String(repeating: "x", count: 3 << 20) + "\""
        for id in ids { #expect(try connection.create("c", id, item).result != nil) }
        let before = try daemon.residentBytes
        #expect(try connection.readMany("c", ids).error?.details?["limit"]?.string == "frame_bytes")
        let once = try connection.readMany("c", Array(repeating: "1", count: 1000)).result
        #expect(once?["records"]?.elements?.count == 1)
        #expect(try daemon.residentBytes - before < 64 << 20)
    }

    @Test func anArrayOfErrorsIsNoLongerThanAFrameEither() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        let request = Connection.request("no.such", nil, id: "1")
        try connection.sendFrame("[\(Array(repeating: request, count: 900).joined(separator: ","))]")
        let reply = try connection.receive()
        #expect(reply.error?.details?["limit"]?.string == "frame_bytes")
        #expect(reply.id.text == "null")
        let id = "\"" + String(repeating: "x", count: 65_450) + "\""
        try connection.sendFrame(Connection.request("no.such", nil, id: id))
        #expect(try connection.receive().id.text == "null")
        #expect(try connection.isUsable())
    }

    @Test func batchesAreSoLongAndNoLonger() throws {
        let daemon = try Daemon(Configuration(limits: "batch: 3"))
        let connection = try daemon.connect()
        #expect(try connection.readMany("c", ["a", "b", "c"]).result != nil)
        #expect(try connection.readMany("c", ["a", "b", "c", "d"]).error?.details?["limit"]?.string == "batch")
        let write = Connection.notification("record.create", Connection.params("c", "a", item: "1"))
        try connection.sendFrame("[\(write),\(write),\(write),\(write)]")
        let reply = try connection.receive()
        #expect(reply.error?.details?["limit"]?.string == "batch")
        #expect(reply.error?.details?["maximum"]?.integer == 3)
        #expect(try connection.exists("c", "a") == false)
    }

    @Test func anIdleSessionIsClosedWhereThatIsAskedFor() throws {
        let daemon = try Daemon(Configuration(limits: "idle_timeout: 3s"))
        let connection = try daemon.connect()
        #expect(try connection.isUsable())
        #expect(try connection.receiveFrame() == nil)
    }

    @Test func helloTellsTheLimitsInForce() throws {
        let daemon = try Daemon(
            Configuration(limits: "frame_bytes: 1MiB\nitem_bytes: 100KiB\njson_depth: 50\nbatch: 7"))
        let limits = try daemon.connect().call("session.hello").result?["limits"]
        #expect(limits?["frame_bytes"]?.integer == 1 << 20)
        #expect(limits?["item_bytes"]?.integer == 100 << 10)
        #expect(limits?["json_depth"]?.integer == 50)
        #expect(limits?["batch"]?.integer == 7)
    }
}
