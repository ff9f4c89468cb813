import CRUDFormats
import CRUDModel
import CRUDTestSupport
import Testing

/// Broken stored items by the thousand: each is corrupt, or a value.
@Suite struct CodecFuzzTests {
    private static let items = [
        #"{"name":"Ada","age":36,"tags":["a","é😀",""],"address":{"city":"London","":[[],{}]},"score":0.5,"ok":true}"#,
        #"[1,-1,255,65536,18446744073709551615,-9223372036854775808,1e22,-0.0]"#, #""a & b < c""#, "[[[[[[1]]]]]]",
        #"[{"id":1,"n":"x"},{"id":2,"n":"x"},{"id":3,"n":"y"}]"#, "[" + String(repeating: "\"a\",", count: 300) + "1]",
    ]

    @Test(arguments: [CollectionRule.Format.json, .xml, .plist], [1, 2, 3, 4] as [UInt64])
    func brokenItemsAreSurvived(format: CollectionRule.Format, seed: UInt64) throws {
        let codec = Codec(format)
        let seeds = try Self.items.map(codec.encode)
        var random = SeededGenerator(seed: seed)
        var values = 0
        for _ in 0..<1500 {
            let bytes = mutated(seeds, &random)
            do throws(CRUDError) {
                let item = try codec.decode(bytes, maximumBytes: 1 << 16)
                values += 1
                #expect(throws: Never.self) { try JSON(parsing: item) }
            } catch {
                #expect(error.code == .corrupt || error.code == .limitExceeded, "\(error)")
            }
        }
        #expect(values > 0)
    }

    private func mutated(_ seeds: [[UInt8]], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = seeds[Int(random.next() % UInt64(seeds.count))]
        for _ in 0...random.next() % 4 {
            let position = Int(random.next() % UInt64(max(bytes.count, 1)))
            guard position < bytes.count else { break }
            switch random.next() % 7 {
            case 0: bytes[position] ^= 1 << UInt8(random.next() % 8)
            case 1: bytes[position] = UInt8(truncatingIfNeeded: random.next())
            case 2: bytes.remove(at: position)
            case 3: bytes.insert(Array("<>&;/![]-?\"'x0\u{0}".utf8).randomElement(using: &random) ?? 0, at: position)
            case 4: bytes.removeSubrange(position..<min(bytes.count, position + Int(random.next() % 16)))
            case 5:
                // Near the end, where the numbers stand that a binary property list is found by.
                let place = bytes.count - 1 - Int(random.next() % UInt64(min(bytes.count, 48)))
                bytes[place] = UInt8(truncatingIfNeeded: random.next() % 64)
            default:
                let other = seeds[Int(random.next() % UInt64(seeds.count))]
                bytes.replaceSubrange(position..., with: other.suffix(Int(random.next() % UInt64(other.count))))
            }
        }
        return bytes
    }
}
