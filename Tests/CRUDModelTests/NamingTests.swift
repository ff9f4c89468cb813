import CRUDModel
import Testing

/// The rule that ids and collection names share.
@Suite struct NamingTests {
    private func fault(_ bytes: [UInt8], maximum: Int = Naming.maximumIDBytes) -> String? {
        Naming.fault(bytes.span, maximum: maximum)
    }

    @Test(arguments: [
        "a", " ", ".", "..", "../../etc/passwd", "a/b", "\\", "'; DROP TABLE clients; --", "%00", "😀", "é", "e\u{301}",
        "\u{80}", "\u{9F}", "\u{2028}", "\u{FEFF}", "\u{FFFF}", "\u{10FFFF}", "null", "\"",
    ])
    func almostAnythingIsAName(text: String) {
        #expect(fault(Array(text.utf8)) == nil)
    }

    @Test func controlCharactersAreNot() {
        for byte in UInt8.min...0x7F {
            let isControl = byte < 0x20 || byte == 0x7F
            for bytes in [[byte], [0x61, byte], [byte, 0x61], [0x61, byte, 0x61]] {
                #expect((fault(bytes) == "contains a control character") == isControl)
            }
        }
    }

    @Test func lengthIsCountedInBytes() {
        #expect(fault([]) == "is empty")
        #expect(fault(Array(repeating: 0x61, count: 512)) == nil)
        #expect(fault(Array(repeating: 0x61, count: 513)) == "is longer than 512 bytes")
        #expect(fault(Array(String(repeating: "é", count: 256).utf8)) == nil)
        #expect(fault(Array(String(repeating: "é", count: 257).utf8)) == "is longer than 512 bytes")
        #expect(fault(Array(repeating: 0x61, count: 128), maximum: Naming.maximumCollectionNameBytes) == nil)
        #expect(fault(Array(repeating: 0x61, count: 129), maximum: Naming.maximumCollectionNameBytes) != nil)
    }
}
