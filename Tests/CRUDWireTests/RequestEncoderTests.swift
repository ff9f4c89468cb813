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
}
