import CRUDTestSupport
import Testing

/// JSON is RFC 8259, strictly.
@Suite(.daemon) struct JSONCorpusTests {
    @Test func validTextsAreAcceptedAndComeBackEqual() throws {
        let connection = try Daemon.shared.connect()
        for (number, text) in JSONCorpus.valid.enumerated() {
            let start = String(text.prefix(60)).debugDescription
            #expect(try connection.upsert("corpus", "\(number)", text).result != nil, "\(start)")
            guard let stored = try connection.read("corpus", "\(number)").result?["item"] else {
                Issue.record("\(start) is not there")
                continue
            }
            #expect(try stored.means(JSON(parsing: text)), "\(start) came back as \(stored.text.prefix(60))")
        }
    }

    @Test func validTextsAreNoParseErrors() throws {
        let connection = try Daemon.shared.connect()
        for text in JSONCorpus.valid {
            try connection.sendFrame(text)
            let frame = try #require(try connection.receiveFrame())
            let message = try JSON(parsing: frame)
            let replies = try (message.elements ?? [message]).map(Reply.init)
            for reply in replies {
                let name = reply.error?.name
                #expect(name == "invalid_request" || name == "limit_exceeded", "\(text.prefix(60).debugDescription)")
            }
            #expect(try connection.isUsable())
        }
    }

    @Test func invalidTextsAreParseErrors() throws {
        let connection = try Daemon.shared.connect()
        for text in JSONCorpus.invalid { try expectParseError(connection, text, about: text) }
    }

    @Test func invalidItemsAreParseErrors() throws {
        let connection = try Daemon.shared.connect()
        let head = Array(
            #"{"jsonrpc":"2.0","id":1,"method":"record.upsert","params":{"collection":"no","id":"a","item":"#.utf8)
        for text in JSONCorpus.invalid { try expectParseError(connection, head + text + Array("}}".utf8), about: text) }
        #expect(try connection.exists("no", "a") == false)
    }

    @Test func invalidTextAnywhereInARequestIsAParseError() throws {
        let connection = try Daemon.shared.connect()
        let frames: [[UInt8]] = [
            Array(#"{"jsonrpc":"2.0","id":01,"method":"daemon.ping"}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":"\ud800","method":"daemon.ping"}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping"},"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping",}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping"}{}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping"}"#.utf8) + [0],
            [0xEF, 0xBB, 0xBF] + Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping"}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping","extra":"#.utf8) + [0x22, 0xFF, 0x22, 0x7D],
            Array(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping\x"}"#.utf8),
            Array(#"{"jsonrpc":"2.0","method":"daemon.ping"#.utf8),
        ]
        for frame in frames { try expectParseError(connection, frame, about: frame) }
    }

    private func expectParseError(_ connection: Connection, _ frame: [UInt8], about text: [UInt8]) throws {
        let start = String(decoding: text.prefix(60), as: UTF8.self).debugDescription
        try connection.sendFrame(frame)
        let reply = try connection.receive()
        #expect(reply.error?.code == -32700, "\(start) gave \(reply)")
        #expect(reply.id.isNull, "\(start)")
        #expect(try connection.isUsable(), "\(start)")
    }
}
