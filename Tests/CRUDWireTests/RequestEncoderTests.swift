import CRUDJSON
import CRUDWire
import Testing

@Suite struct RequestEncoderTests {
    @Test func writesAFrame() {
        let frame = RequestEncoder.frame(id: 7, method: "record.create") { request in
            request.object { params in
                params.member("id", "a\"b")
                params.key("item")
                params.raw("[1.0]".utf8)
            }
        }
        let text = #"{"jsonrpc":"2.0","id":7,"method":"record.create","params":{"id":"a\"b","item":[1.0]}}"#
        #expect(frame == [0, 0, 0, UInt8(text.utf8.count)] + Array(text.utf8))
    }

    @Test func writesTheTrace() {
        let frame = RequestEncoder.frame(id: 7, method: "daemon.ping", traceparent: "a\"b") { $0.object { _ in } }
        let text = #"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","traceparent":"a\"b","params":{}}"#
        #expect(frame.dropFirst(4) == Array(text.utf8)[...])
    }
}
