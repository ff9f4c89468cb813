import Testing

@testable import CRUDPluginHost

@Suite struct Base64Tests {
    /// The vectors of RFC 4648, section 10, and what is special about the alphabet.
    static let vectors: [([UInt8], String)] = [
        ([], ""), (Array("f".utf8), "Zg=="), (Array("fo".utf8), "Zm8="), (Array("foo".utf8), "Zm9v"),
        (Array("foob".utf8), "Zm9vYg=="), (Array("fooba".utf8), "Zm9vYmE="), (Array("foobar".utf8), "Zm9vYmFy"),
        ([0xFB, 0xEF, 0xBE, 0xFF], "++++/w=="), ([0], "AA=="), ([0, 0, 0], "AAAA"),
    ]

    @Test(arguments: vectors)
    func bothWays(bytes: [UInt8], text: String) {
        var encoded: [UInt8] = []
        bytes.withUnsafeBytes { Base64.append($0, to: &encoded) }
        #expect(String(decoding: encoded, as: UTF8.self) == text)
        #expect(Array(text.utf8).withUnsafeBytes { Base64.bytes($0) } == bytes)
    }

    @Test func everyLengthComesBack() {
        for count in 0..<200 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 73) }
            var encoded: [UInt8] = []
            bytes.withUnsafeBytes { Base64.append($0, to: &encoded) }
            #expect(encoded.withUnsafeBytes { Base64.bytes($0) } == bytes)
        }
    }

    @Test(arguments: [
        "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm9-", "Zm_v", "Zh==", "Zm9=", " Zg=", "Zg=a",
    ])
    func whatIsNoneIsRefused(text: String) {
        #expect(Array(text.utf8).withUnsafeBytes { Base64.bytes($0) } == nil)
    }
}
