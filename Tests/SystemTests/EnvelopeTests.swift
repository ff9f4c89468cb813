import CRUDTestSupport
import Testing

/// Requests, their ids, and what is no request.
@Suite(.daemon) struct EnvelopeTests {
    @Test func idsComeBackAsTheyWereSent() throws {
        let connection = try Daemon.shared.connect()
        let ids = [
            "0", "1", "-1", "-0", "9007199254740993", "18446744073709551616", "123456789012345678901234567890",
            "null", #""""#, #""a""#, #""1""#, #""\u0041""#, #""\/""#, #""\n\t\"\\""#, #""\ud83d\ude00""#,
            "\"😀\"", "\"e\u{301}\"", "\"\u{7F}\"", #""\u0000""#, "\"" + String(repeating: "x", count: 1000) + "\"",
        ]
        for id in ids {
            try connection.sendFrame(Connection.request("daemon.ping", id: id))
            let reply = try connection.receive()
            #expect(Array(reply.id.text.utf8) == Array(id.utf8))
            #expect(reply.result?.text == "{}")
            try connection.sendFrame(Connection.request("no.such.method", id: id))
            #expect(try Array(connection.receive().id.text.utf8) == Array(id.utf8))
        }
    }

    @Test(arguments: [
        ("1", "null"), (#""x""#, "null"), ("null", "null"), ("true", "null"), ("{}", "null"),
        (#"{"jsonrpc":"2.0"}"#, "null"), (#"{"jsonrpc":"2.0","id":7}"#, "7"),
        (#"{"id":7,"method":"daemon.ping"}"#, "7"), (#"{"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"1.0","id":7,"method":"daemon.ping"}"#, "7"),
        (#"{"jsonrpc":2.0,"id":7,"method":"daemon.ping"}"#, "7"),
        (#"{"jsonrpc":"2.00","id":"a","method":"daemon.ping"}"#, #""a""#),
        (#"{"jsonrpc":null,"id":7,"method":"daemon.ping"}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":5}"#, "7"), (#"{"jsonrpc":"2.0","id":7,"method":null}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":["daemon.ping"]}"#, "7"),
        (#"{"jsonrpc":"2.0","id":1.5,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":true,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":false,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":{},"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":[1],"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":1,"id":2,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":1,"id":1,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"daemon.ping"}"#, "null"),
        (#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"daemon.ping"}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","method":"daemon.ping"}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","m\u0065thod":"daemon.status"}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","params":{},"params":{}}"#, "7"),
        (#"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","extra":1,"extra":2}"#, "7"),
        (
            #"{"jsonrpc":"2.0","id":7,"method":"record.read","params":{"collection":"a","collection":"a","id":"b"}}"#,
            "7"
        ),
        (#"{"jsonrpc":"2.0","id":7,"method":"record.read","params":{"collection":"a","id":"b","\u0069d":"c"}}"#, "7"),
    ])
    func whatIsNoRequestIsInvalid(frame: String, id: String) throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame(frame)
        let reply = try connection.receive()
        #expect(reply.error?.code == -32600)
        #expect(reply.error?.name == "invalid_request")
        #expect(reply.id.text == id)
        #expect(try connection.isUsable())
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","extra":{"a":[1,{"b":null}]},"":0}"#,
        #"{"method":"daemon.ping","id":7,"jsonrpc":"2.0"}"#,
        #"{"params":{},"id":7,"method":"daemon.ping","jsonrpc":"2.0"}"#,
        " {\t\"jsonrpc\" :\r\n\"2.0\" , \"id\" : 7 , \"method\" : \"daemon.ping\" , \"params\" : { } } \n",
        #"{"json\u0072pc":"\u0032.0","\u0069d":7,"\u006dethod":"daemon\u002eping"}"#,
        #"{"ID":8,"jsonrpc":"2.0","id":7,"method":"daemon.ping","Method":5,"PARAMS":[]}"#,
        #"{"extra":"id","jsonrpc":"2.0","id":7,"method":"daemon.ping","nested":{"id":1,"id":2}}"#,
    ])
    func whatIsARequestHasAReply(frame: String) throws {
        let connection = try Daemon.shared.connect()
        try connection.sendFrame(frame)
        let reply = try connection.receive()
        #expect(reply.id.text == "7")
        #expect(reply.result?.text == "{}")
    }

    @Test func membersOfParamsAreComparedByCodePoint() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("escaped", "é", "1").result != nil)
        let params = #"{"\u0063ollection":"\u0065scaped","i\u0064":"\u00e9"}"#
        #expect(try connection.call("record.read", params).result?["item"]?.text == "1")
    }

    @Test func repliesToManyCarryTheirIDs() throws {
        let connection = try Daemon.shared.connect()
        for number in 0..<100 { _ = try connection.upsert("ids", "\(number)", "\(number)") }
        let replies = try connection.pipeline(
            (0..<1000).map { ("record.read", Connection.params("ids", "\($0 % 100)")) })
        for (number, reply) in replies.enumerated() {
            #expect(reply.result?["item"]?.integer == number % 100)
        }
    }
}
