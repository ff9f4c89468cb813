import CRUDJSON
import CRUDModel
import CRUDWire
import Testing

@Suite struct ResponseDecoderTests {
    private func decode(_ text: String) throws -> (id: Int?, result: String?, error: CRUDError?) {
        var decoder = ResponseDecoder()
        let bytes = Array(text.utf8)
        let response = try decoder.decode(bytes.span)
        switch response.outcome {
        case .result(let slice): return (response.id, String(decoding: bytes[slice.range], as: UTF8.self), nil)
        case .error(let error): return (response.id, nil, error)
        }
    }

    @Test(arguments: [
        (#"{"jsonrpc":"2.0","id":1,"result":{"a":1e400}}"#, 1, #"{"a":1e400}"#),
        (#" { "result" : [ ] , "id" : 9007199254740993 , "jsonrpc" : "2.0" } "#, 9_007_199_254_740_993, "[ ]"),
        (#"{"jsonrpc":"2\u002e0","\u0069d":-1,"result":null,"more":[{}]}"#, -1, "null"),
    ])
    func findsTheResult(_ text: String, _ id: Int, _ result: String) throws {
        let response = try decode(text)
        #expect(response.id == id)
        #expect(response.result == result)
    }

    @Test func readsErrors() throws {
        let response = try decode(
            #"{"jsonrpc":"2.0","id":null,"error":{"code":-32013,"message":"no \"such\" key","data":{"name":"x","#
                + #""details":{"file":"a\nb","line":3,"column":4,"node":{"op": "?"},"#
                + #""index":0,"path":"p","member":"m"}}}}"#
        )
        #expect(response.id == nil)
        #expect(response.error?.code == .invalidConfiguration)
        #expect(response.error?.message == "no \"such\" key")
        #expect(
            response.error?.details
                == CRUDError.Details(
                    member: "m", index: 0, path: "p", node: #"{"op": "?"}"#, file: "a\nb", line: 3, column: 4))
    }

    @Test(arguments: [
        "", "x", "{", "[]", "1", "{}", #"{"jsonrpc":"2.0"}"#, #"{"jsonrpc":"2.0","id":1}"#,
        #"{"jsonrpc":"2.0","result":1}"#, #"{"id":1,"result":1}"#, #"{"jsonrpc":2.0,"id":1,"result":1}"#,
        #"{"jsonrpc":"2.0","id":"1","result":1}"#, #"{"jsonrpc":"2.0","id":1.5,"result":1}"#,
        #"{"jsonrpc":"2.0","id":1e2,"result":1}"#, #"{"jsonrpc":"2.0","id":[1],"result":1}"#,
        #"{"jsonrpc":"2.0","id":18446744073709551616,"result":1}"#, #"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        #"{"jsonrpc":"2.0","id":1,"result":1,"result":1}"#, #"{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}"#,
        #"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, #"{"jsonrpc":"2.0","id":1,"error":null}"#,
        #"{"jsonrpc":"2.0","id":1,"result":1}{}"#,
    ])
    func refusesWhatIsNoResponse(_ text: String) {
        #expect(throws: ProtocolViolation.self) { try decode(text) }
    }
}
