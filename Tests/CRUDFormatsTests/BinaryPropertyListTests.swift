import CRUDFormats
import CRUDModel
import CRUDTestSupport
import Testing

/// Binary property lists as they are written, as others write them, and as nobody should.
@Suite struct BinaryPropertyListTests {
    /// A property list of these objects, of which the first is the top.
    private func document(
        _ objects: [[UInt8]], top: UInt64 = 0, referenceSize: UInt8 = 1, offsetSize: Int = 1, count: UInt64? = nil,
        offsets: [Int]? = nil, table: UInt64? = nil
    ) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var places: [Int] = []
        for object in objects {
            places.append(bytes.count)
            bytes += object
        }
        let start = bytes.count
        for place in offsets ?? places { bytes += bigEndian(UInt64(truncatingIfNeeded: place), offsetSize) }
        bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), referenceSize]
        for number in [count ?? UInt64(objects.count), top, table ?? UInt64(start)] { bytes += bigEndian(number, 8) }
        return bytes
    }

    private func bigEndian(_ value: UInt64, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: value >> UInt64((size - 1 - $0) * 8)) }
    }

    private func decode(_ objects: [[UInt8]]) throws -> String { try Codec(.plist).decode(document(objects)) }

    private func code(_ document: [UInt8]) -> String? {
        Codec(.plist).fault(in: document, maximumBytes: 1 << 20)?.code.name
    }

    @Test func isWrittenAsApplesToolsDo() throws {
        let expected = document([
            [0xD2, 1, 3, 2, 4], [0x51, 0x61], [0x10, 0x01], [0x51, 0x62], [0xA2, 2, 1],
        ])
        #expect(try Codec(.plist).encode(#"{"a":1,"b":[1,"a"]}"#) == expected)
    }

    @Test(
        arguments: [
            ([0x00], "null"), ([0x08], "false"), ([0x09], "true"), ([0x10, 0xFF], "255"),
            ([0x11, 0xFF, 0xFF], "65535"),
            ([0x12, 0xFF, 0xFF, 0xFF, 0xFF], "4294967295"),
            ([0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "-1"),
            ([0x14] + [UInt8](repeating: 0, count: 8) + [UInt8](repeating: 0xFF, count: 8), "18446744073709551615"),
            ([0x14] + [UInt8](repeating: 0xFF, count: 16), "-1"), ([0x22, 0x3F, 0x80, 0, 0], "1.0"),
            ([0x22, 0x3D, 0xCC, 0xCC, 0xCD], "0.10000000149011612"), ([0x23, 0x80, 0, 0, 0, 0, 0, 0, 0], "-0.0"),
            ([0x23, 0x3F, 0xB9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9A], "0.1"), ([0x50], "\"\""),
            ([0x52, 0x68, 0x69], "\"hi\""),
            ([0x5F, 0x10, 0x01, 0x0A], #""\n""#), ([0x5F, 0x13, 0, 0, 0, 0, 0, 0, 0, 1, 0x61], "\"a\""),
            ([0x60], "\"\""),
            ([0x61, 0x00, 0xE9], "\"é\""), ([0x62, 0xD8, 0x3D, 0xDE, 0x00], "\"😀\""), ([0xA0], "[]"), ([0xD0], "{}"),
            ([0x53, 0x22, 0x5C, 0x01], #""\"\\\u0001""#),
        ] as [([UInt8], String)])
    func readsEveryKind(object: [UInt8], item: String) throws {
        #expect(try decode([object]) == item)
    }

    @Test func readsSharedObjectsAndWideReferences() throws {
        #expect(try decode([[0xA3, 1, 1, 2], [0x51, 0x61], [0xD1, 1, 1]]) == #"["a","a",{"a":"a"}]"#)
        let wide = document([[0xA1, 0, 0, 0, 0, 0, 1], [0x09]], referenceSize: 6, offsetSize: 8)
        #expect(try Codec(.plist).decode(wide) == "[true]")
        let turned = document([[0x09], [0xA1, 0]], top: 1, referenceSize: 1, offsetSize: 3)
        #expect(try Codec(.plist).decode(turned) == "[true]")
    }

    @Test(
        arguments: [
            // Kinds that JSON does not have, and that nobody has.
            [[0x33, 0x41, 0, 0, 0, 0, 0, 0, 0]], [[0x41, 0x00]], [[0x80, 0x01]], [[0x0F]], [[0x01]], [[0x70]], [[0xB0]],
            [[0xC0]],
            [[0xE0]], [[0xF0]], [[0x15] + [UInt8](repeating: 0, count: 32)],
            [[0x24] + [UInt8](repeating: 0, count: 16)], [[0x20, 0]],
            // Infinities and NaN.
            [[0x23, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0]], [[0x23, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0]], [[0x22, 0xFF, 0x80, 0, 0]],
            // Objects beyond the end.
            [[0x13, 0]], [[0x22, 0]], [[0x52, 0x61]], [[0x62, 0, 0x61]], [[0xA1]], [[0xD1, 0]], [[0x5F]],
            [[0x5F, 0x10]],
            [[0x5F, 0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]],
            [[0xAF, 0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]],
            [[0xDF, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0]], [[0x6F, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0]],
            // Sizes that are none.
            [[0x5F, 0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]], [[0x5F, 0x51, 0x61]],
            [[0x5F, 0x14] + [UInt8](repeating: 1, count: 16)],
            // References to nothing, keys that are no strings.
            [[0xA1, 1]], [[0xA1, 255]], [[0xD1, 1, 1]], [[0xD1, 1, 1], [0x10, 1]], [[0xD1, 0, 1], [0x09]],
            // Text that is none.
            [[0x51, 0x80]], [[0x61, 0xD8, 0x00]], [[0x62, 0xD8, 0x00, 0x00, 0x61]], [[0x61, 0xDC, 0x00]],
            // An object in itself.
            [[0xA1, 0]], [[0xA2, 1, 0], [0x09]], [[0xA1, 1], [0xA1, 2], [0xA1, 0]], [[0xD1, 1, 0], [0x51, 0x61]],
            [[0xA2, 1, 1], [0xA1, 1]],
        ] as [[[UInt8]]])
    func faultyObjectsAreCorrupt(objects: [[UInt8]]) {
        #expect(code(document(objects)) == "corrupt")
    }

    @Test func faultyTrailersAreCorrupt() {
        let object: [UInt8] = [0x09]
        #expect(code(document([object])) == nil)
        let faulty = [
            document([object], top: 1), document([object], top: .max), document([object], count: 0),
            document([object], count: 2), document([object], count: .max), document([object], count: 1 << 62),
            document([object], offsetSize: 0), document([object], referenceSize: 0),
            document([object], referenceSize: 9),
            document([object], offsetSize: 16), document([object], table: 0), document([object], table: 7),
            document([object], table: 8), document([object], table: 40), document([object], table: .max),
            document([object], offsets: [0]), document([object], offsets: [7]), document([object], offsets: [9]),
            document([object], offsets: [200]), document([object], offsets: [1 << 40]),
            document([object], offsets: [-1]),
            document([object], offsetSize: 8, offsets: [-1]), document([]), [], Array("bplist00".utf8),
            Array("bplist00".utf8) + [UInt8](repeating: 0, count: 32),
            Array("bplist01".utf8) + document([object]).dropFirst(8),
            Array(document([object]).dropFirst()), Array(document([object]).dropLast()), Array("<plist/>".utf8),
            [UInt8](repeating: 0xFF, count: 100),
        ]
        for (number, document) in faulty.enumerated() { #expect(code(document) == "corrupt", "\(number)") }
    }

    @Test(
        arguments: [
            ([0x33, 0x41, 0, 0, 0, 0, 0, 0, 0], "date"), ([0x41, 0x00], "data"), ([0x80, 0x01], "UID"),
            ([0x23, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0], "inf"), ([0x23, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0], "nan"),
        ] as [([UInt8], String)])
    func theErrorSaysWhy(object: [UInt8], word: String) throws {
        let error = try #require(Codec(.plist).fault(in: document([object])))
        #expect(error.message.contains(word), "\(error.message)")
    }

    /// Thirty arrays, each twice in the one before: a billion elements in 200 bytes.
    @Test func sharedObjectsDoNotExplode() {
        let start = ContinuousClock.now
        for fill in [0xA0, 0x09, 0x50] as [UInt8] {
            let arrays = (1...30).map { [0xA2, UInt8($0), UInt8($0)] }
            #expect(code(document(arrays + [[fill]])) == "limit_exceeded")
            let dictionaries = (1...30).map { [0xD2, UInt8(31), UInt8(31), UInt8($0), UInt8($0)] }
            #expect(code(document(dictionaries + [[fill], [0x51, 0x61]])) == "limit_exceeded")
        }
        #expect(start.duration(to: .now) < .seconds(60))
    }

    @Test func depthIsBounded() {
        let arrays = (1...100_000).map { [0xA1] + bigEndian(UInt64($0), 4) }
        #expect(code(document(arrays + [[0x09]], referenceSize: 4, offsetSize: 4)) == "corrupt")
    }
}
