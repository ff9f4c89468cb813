import CRUDTestSupport
import Testing

/// JSON-RPC batch arrays.
@Suite(.daemon) struct BatchTests {
    @Test func elementsTakeEffectInOrder() throws {
        let connection = try Daemon.shared.connect()
        let read = Connection.params("ordered", "a")
        let replies = try batch(
            connection,
            [
                Connection.request("record.create", Connection.params("ordered", "a", item: "1"), id: "1"),
                Connection.request("record.read", read, id: "2"),
                Connection.request("record.update", Connection.params("ordered", "a", item: "2"), id: "3"),
                Connection.request("record.read", read, id: "4"),
                Connection.request("record.delete", read, id: "5"),
                Connection.request("record.read", read, id: "6"),
                Connection.request("record.create", Connection.params("ordered", "a", item: "3"), id: "7"),
            ])
        #expect(Set(replies.keys) == ["1", "2", "3", "4", "5", "6", "7"])
        #expect(replies["2"]?.result?["item"]?.text == "1")
        #expect(replies["4"]?.result?["item"]?.text == "2")
        #expect(replies["5"]?.result?.text == "{}")
        #expect(replies["6"]?.error?.name == "record_not_found")
        #expect(replies["7"]?.result != nil)
    }

    @Test func notificationsInsideAreExecutedWithoutAReply() throws {
        let connection = try Daemon.shared.connect()
        let replies = try batch(
            connection,
            [
                Connection.notification("record.create", Connection.params("mixed", "a", item: "1")),
                Connection.request("record.read", Connection.params("mixed", "a"), id: #""x""#),
                Connection.notification("record.update", Connection.params("mixed", "a", item: "2")),
                Connection.notification("no.such.method"),
                Connection.request("record.read", Connection.params("mixed", "a"), id: #""y""#),
            ])
        #expect(replies.count == 2)
        #expect(replies[#""x""#]?.result?["item"]?.text == "1")
        #expect(replies[#""y""#]?.result?["item"]?.text == "2")
    }

    @Test func ofNotificationsOnlyHasNoReply() throws {
        let connection = try Daemon.shared.connect()
        let notifications = (0..<10).map {
            Connection.notification("record.upsert", Connection.params("silent", "a", item: "\($0)"))
        }
        try connection.sendFrame("[\(notifications.joined(separator: ","))]")
        #expect(try connection.item("silent", "a") == "9")
        #expect(try connection.finish().isEmpty)
    }

    @Test(arguments: ["[]", " [ ] "])
    func anEmptyOneIsInvalid(frame: String) throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame(frame)
        let reply = try connection.receive()
        #expect(reply.error?.name == "invalid_request")
        #expect(reply.id.isNull)
        #expect(try connection.isUsable())
    }

    @Test func invalidElementsHaveRepliesOfTheirOwn() throws {
        let connection = try Daemon.shared.connect()
        let ping = Connection.request("daemon.ping", id: "7")
        try connection.sendFrame("[1,\(ping),{},[],[\(ping)],\"x\",null,{\"jsonrpc\":\"2.0\",\"id\":8}]")
        let replies = try connection.receiveBatch()
        #expect(replies.count == 8)
        #expect(replies.filter { $0.id.text == "7" }.compactMap { $0.result?.text } == ["{}"])
        #expect(replies.count { $0.id.isNull && $0.error?.name == "invalid_request" } == 6)
        #expect(replies.count { $0.id.text == "8" && $0.error?.name == "invalid_request" } == 1)
    }

    @Test func ofOneHasAnArrayAsReply() throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame("[1]")
        #expect(try connection.receiveBatch().map(\.error?.name) == ["invalid_request"])
        try connection.sendFrame("[\(Connection.request("daemon.ping", id: "1"))]")
        #expect(try connection.receiveBatch().map(\.result?.text) == ["{}"])
    }

    @Test func thatIsNotJSONHasOneReply() throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame("[\(Connection.request("daemon.ping", id: "1")),]")
        let reply = try connection.receive()
        #expect(reply.error?.name == "parse_error")
        #expect(reply.id.isNull)
    }

    @Test func aThousandElementsAreTakenAndNoMore() throws {
        let connection = try Daemon.shared.connect()
        let writes = (0..<1000).map {
            Connection.request("record.create", Connection.params("thousand", "\($0)", item: "1"), id: "\($0)")
        }
        #expect(try batch(connection, writes).values.count { $0.result != nil } == 1000)
        let more = (0..<1001).map {
            Connection.request("record.create", Connection.params("too many", "\($0)", item: "1"), id: "\($0)")
        }
        try connection.sendFrame("[\(more.joined(separator: ","))]")
        let reply = try connection.receive()
        #expect(reply.id.isNull)
        #expect(reply.error?.name == "limit_exceeded")
        #expect(reply.error?.details?["limit"]?.string == "batch")
        #expect(reply.error?.details?["maximum"]?.integer == 1000)
        #expect(try connection.exists("too many", "0") == false)
    }

    @Test func largerThanWhatMayBeInFlightIsServed() throws {
        let daemon = try Daemon(Configuration(limits: "inflight_per_session: 2"))
        let connection = try daemon.connect()
        for _ in 0..<3 {
            let writes = (0..<20).map {
                Connection.request("record.upsert", Connection.params("c", "\($0)", item: "1"), id: "\($0)")
            }
            #expect(try batch(connection, writes).values.count { $0.result != nil } == 20)
        }
    }

    @Test func doesNotCountAsNestingOfTheItem() throws {
        let connection = try Daemon.shared.connect()
        let item = String(repeating: "[", count: 128) + String(repeating: "]", count: 128)
        let replies = try batch(
            connection,
            [
                Connection.request("record.create", Connection.params("nested", "a", item: item), id: "1"),
                Connection.request("record.create", Connection.params("nested", "b", item: "[\(item)]"), id: "2"),
            ])
        let all = try #require(replies["1"] == nil ? nil : replies)
        #expect(all["1"]?.result != nil)
        #expect(all["2"]?.error?.name == "limit_exceeded")
    }

    /// The first page takes no more than its part of the frame, unless its first record needs more.
    @Test(arguments: [(bytes: 20_000, pages: 8), (bytes: 200_000, pages: 3)])
    func pagesLeaveRoomForTheElementsBehindThem(records: (bytes: Int, pages: Int)) throws {
        let daemon = try Daemon(
            Configuration(
                collections: #""*": {backend: main, changes: true}"#, limits: "frame_bytes: 1MiB\nitem_bytes: 256KiB"))
        let connection = try daemon.connect()
        let item = "\"" + String(repeating: "x", count: records.bytes) + "\""
        for number in 0..<3_000_000 / records.bytes { _ = try connection.create("c", "\(number)", item) }
        for (method, member) in [("record.query", "records"), ("collection.changes", "changes")] {
            var requests = (0..<records.pages).map { Connection.request(method, #"{"collection":"c"}"#, id: "\($0)") }
            for number in records.pages..<2 * records.pages {
                let params = Connection.params("c", "new \(method) \(number)", item: "1")
                requests.append(Connection.request("record.create", params, id: "\(number)"))
            }
            let replies = try batch(connection, requests)
            for number in 0..<records.pages {
                let reply = try #require(replies["\(number)"])
                #expect(reply.error == nil, "\(method)")
                #expect(reply.result?[member]?.elements?.isEmpty == false, "\(method)")
                #expect(reply.result?["cursor"]?.string != nil, "\(method)")
            }
            #expect(replies.values.count { $0.result?["revision"] != nil } == records.pages)
        }
    }

    private func batch(_ connection: Connection, _ requests: [String]) throws -> [String: Reply] {
        try connection.sendFrame("[\(requests.joined(separator: ","))]")
        return Dictionary(uniqueKeysWithValues: try connection.receiveBatch().map { ($0.id.text, $0) })
    }
}
