/// Items for records: of each format something that a codec could have made.
enum Sample {
    /// The formats that items can have.
    static let formats = ["json", "xml", "plist"]

    /// A small item that no other number has.
    static func item(_ number: Int, _ format: String, padding: Int = 0) -> [UInt8] {
        switch format {
        case "json": Array(#"{"number":\#(number),"padding":"\#(String(repeating: "x", count: padding))"}"#.utf8)
        case "xml":
            Array(
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <plist version="1.0"><array><integer>\(number)</integer>\
                <string>\(String(repeating: "x", count: padding))</string></array></plist>
                """.utf8)
        default: Array("bplist00".utf8) + bytes(of: number) + noise(padding, seed: UInt64(number))
        }
    }

    /// Items that text handling, escaping or terminators could change.
    static func oddItems(_ format: String) -> [[UInt8]] {
        switch format {
        case "json":
            [
                "{}", "[]", "\"\"", "null", "true", "0", "-0.0", "1E+400", "123456789012345678901234567890.50",
                "{\"a\" : [ 1,\t2 ]\r\n}", #""\u0000\u001f\"\\\/""#, "\"e\u{301} \u{E9} \u{1F600} \u{10FFFF}\"",
                "\"\u{FEFF}\u{FFFE}\u{FFFF}\u{7F}\u{85}\u{2028}\"", "{\"\": {\"\" :\"\"}}",
                "\"']]><!--&amp;%s%n\"",
                String(repeating: "[", count: 100) + String(repeating: "]", count: 100),
            ].map { Array($0.utf8) }
        case "xml":
            [
                "<plist version=\"1.0\"><dict/></plist>", "<?xml version=\"1.0\"?>\r\n<plist><true/></plist>\r",
                "<plist><string>&lt;&amp;]]&gt; &#13; e\u{301} \u{1F600} \u{85}\u{2028}</string></plist>\n",
                "<plist><!-- <plist> ]]> --><string><![CDATA[<&]]></string></plist>",
            ].map { Array($0.utf8) }
        default:
            [
                [0], [0, 0, 0], Array(0...255), Array("bplist00".utf8) + Array((0...255).reversed()), [0xFF, 0xFE],
                [0xC0, 0x80], [0xED, 0xA0, 0x80], Array("text alone".utf8), Array("a\r\nb\rc\0".utf8),
            ]
        }
    }

    /// Pseudorandom bytes, the same for the same seed: a block of them, repeated.
    private static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
        var state = seed &* 2 &+ 1
        let block = (0..<min(count, 4093)).map { _ in
            // Knuth's multiplier for 64 bits.
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        var noise: [UInt8] = []
        while noise.count < count { noise += block.prefix(count - noise.count) }
        return noise
    }

    private static func bytes(of number: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
