import CRUDTestSupport
import Testing

/// Notifications are executed and have no reply.
@Suite(.daemon) struct NotificationTests {
    @Test func areExecutedInOrderWithoutAReply() throws {
        let connection = try Daemon.shared.connect()
        for number in 0..<100 {
            try connection.sendFrame(
                Connection.notification("record.upsert", Connection.params("notified", "a", item: "\(number)")))
        }
        #expect(try connection.item("notified", "a") == "99")
        #expect(try connection.finish().isEmpty)
    }

    @Test(arguments: [
        (method: "record.read", params: #"{"collection":"nothing","id":"a"}"#),
        (method: "record.create", params: #"{"collection":"nothing"}"#),
        (method: "record.create", params: "[]"), (method: "record.create", params: "5"),
        (method: "record.create", params: #"{"collection":"nothing","id":"","item":1}"#),
        (method: "no.such.method", params: "{}"), (method: "daemon.ping", params: "{}"),
        (method: "record.update", params: #"{"collection":"nothing","id":"a","item":1,"ifRevision":"x"}"#),
    ])
    func haveNoReplyEvenIfTheyFail(method: String, params: String) throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame(Connection.notification(method, params))
        #expect(try connection.isUsable())
        #expect(try connection.finish().isEmpty)
    }

    @Test func aNullIDIsNoNotification() throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame(Connection.request("daemon.ping", id: "null"))
        let reply = try connection.receive()
        #expect(reply.id.isNull)
        #expect(reply.result?.text == "{}")
    }

    @Test func ofAPeerThatHasGoneAreStillExecuted() throws {
        let daemon = try Daemon.shared
        let leaving = try daemon.connect()
        var bytes: [UInt8] = []
        for number in 0..<100 {
            bytes += Connection.frame(
                Connection.notification("record.create", Connection.params("last", "\(number)", item: "1")))
        }
        try leaving.send(bytes)
        leaving.close()
        let connection = try daemon.connect()
        let deadline = Deadline()
        while try connection.exists("last", "99") != true {
            try #require(!deadline.hasPassed, "the last notification was not executed")
        }
        let result = try connection.readMany("last", (0..<100).map(String.init)).result
        #expect(result?["records"]?.elements?.count == 100)
    }
}
