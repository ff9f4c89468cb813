import CRUDJSON
import Testing

@Suite struct Base64Tests {
    /// The vectors of RFC 4648, section 10, without their padding, and what differs from the standard alphabet.
    @Test(
        arguments: [
            ([], ""), (Array("f".utf8), "Zg"), (Array("fo".utf8), "Zm8"), (Array("foo".utf8), "Zm9v"),
            (Array("foob".utf8), "Zm9vYg"), (Array("fooba".utf8), "Zm9vYmE"), (Array("foobar".utf8), "Zm9vYmFy"),
            ([0xFB, 0xEF, 0xBE, 0xFF], "----_w"), ([0], "AA"), ([0, 0, 0], "AAAA"),
        ] as [([UInt8], String)])
    func convertsBothWays(bytes: [UInt8], text: String) {
        #expect(String(decoding: Base64.encode(bytes), as: UTF8.self) == text)
        #expect(Base64.decode(Array(text.utf8)) == bytes)
    }

    @Test func restoresBytesOfEveryLength() {
        for count in 0..<200 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 73) }
            let text = Base64.encode(bytes)
            #expect(text.count == Base64.size(of: count))
            #expect(Base64.decode(text) == bytes)
        }
    }

    @Test(arguments: ["Z", "Zg==", "Zm9v\n", "Zm9+", "Zm/v", "Zh", "Zm9", " Zg", "Zm9vY"])
    func rejectsOtherTexts(text: String) {
        #expect(Base64.decode(Array(text.utf8)) == nil)
    }
}
