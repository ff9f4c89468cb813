import CRUDModel
import Testing

/// The rule for ids and names of collections.
@Suite struct NamingTests {
    private func violation(_ bytes: [UInt8], maximum: Int = Naming.maximumIDBytes) -> String? {
        Naming.violation(bytes.span, maximum: maximum)
    }

    @Test(arguments: [
        "a", " ", ".", "..", "../../etc/passwd", "a/b", "\\", "'; DROP TABLE clients; --", "%00", "😀", "é", "e\u{301}",
        "\u{80}", "\u{9F}", "\u{2028}", "\u{FEFF}", "\u{FFFF}", "\u{10FFFF}", "null", "\"",
    ])
    func almostAnythingIsAName(text: String) {
        #expect(violation(Array(text.utf8)) == nil)
    }

    @Test func controlCharactersAreRejected() {
        for byte in UInt8.min...0x7F {
            let isControl = byte < 0x20 || byte == 0x7F
            for bytes in [[byte], [0x61, byte], [byte, 0x61], [0x61, byte, 0x61]] {
                #expect((violation(bytes) == "contains a control character") == isControl)
            }
        }
    }

    @Test func lengthIsCountedInBytes() {
        #expect(violation([]) == "is empty")
        #expect(violation(Array(repeating: 0x61, count: 512)) == nil)
        #expect(violation(Array(repeating: 0x61, count: 513)) == "is longer than 512 bytes")
        #expect(violation(Array(String(repeating: "é", count: 256).utf8)) == nil)
        #expect(violation(Array(String(repeating: "é", count: 257).utf8)) == "is longer than 512 bytes")
        #expect(violation(Array(repeating: 0x61, count: 128), maximum: Naming.maximumCollectionNameBytes) == nil)
        #expect(violation(Array(repeating: 0x61, count: 129), maximum: Naming.maximumCollectionNameBytes) != nil)
    }
}
