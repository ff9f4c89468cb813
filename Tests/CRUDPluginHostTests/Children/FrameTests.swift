import CRUDJSON
import Testing

@testable import CRUDPluginHost

/// What a frame is made of, and what comes out of it again.
@Suite struct FrameTests {
    /// Reads a text as a frame.
    private func reading<Result>(
        _ text: String, _ body: (inout FrameReader) throws(FrameFault) -> Result
    ) throws(FrameFault) -> Result {
        let bytes = Array(text.utf8)
        var reader = FrameReader()
        return try bytes.withUnsafeBufferPointer { bytes throws(FrameFault) in
            reader.begin(bytes)
            let result = try body(&reader)
            try reader.expectEnd()
            return result
        }
    }

    @Test func beginsWithItsLength() {
        var frame = FrameWriter()
        for text in ["a", String(repeating: "b", count: 300)] {
            frame.begin()
            frame.string(text)
            frame.end()
            let size = text.utf8.count + 2
            #expect(frame.count == size)
            #expect(frame.bytes.prefix(4) == [0, 0, UInt8(size >> 8), UInt8(size & 255)])
            #expect(String(decoding: frame.bytes.dropFirst(4), as: UTF8.self) == "\"\(text)\"")
        }
    }

    @Test(arguments: ["", "plain", "\"quoted\\\"", "\u{0}\u{1F}\n\t", "é😀", String(repeating: "\n", count: 5000)])
    func stringsComeBack(text: String) throws {
        var frame = FrameWriter()
        frame.begin()
        Array(text.utf8).withUnsafeBytes { frame.string($0) }
        let json = String(decoding: frame.bytes.dropFirst(4), as: UTF8.self)
        #expect(try reading(json) { reader throws(FrameFault) in try reader.text() } == text)
    }

    @Test func bytesComeBack() throws {
        let bytes = (0...255).map { UInt8($0) }
        var frame = FrameWriter()
        frame.begin()
        bytes.withUnsafeBytes { frame.base64($0) }
        let json = String(decoding: frame.bytes.dropFirst(4), as: UTF8.self)
        let read = try reading(json) { reader throws(FrameFault) in
            let text = try reader.base64()
            return Array(reader.bytes(text))
        }
        #expect(read == bytes)
    }

    /// What is not one JSON value with nothing around it goes in base64.
    @Test(arguments: [
        ("{\"a\" : 1.0}", #","item":{"a" : 1.0}"#), ("null", #","item":null"#), (" 1", #","bytes":"IDE=""#),
        ("1\n", #","bytes":"MQo=""#), ("", #","bytes":"""#), ("{", #","bytes":"ew==""#), ("1 2", #","bytes":"MSAy""#),
    ])
    func itemsKeepTheirBytes(item: String, member: String) {
        var frame = FrameWriter()
        var scanner = JSONScanner()
        frame.begin()
        Array(item.utf8).withUnsafeBytes { frame.item($0, mayBeJSON: true, &scanner) }
        #expect(String(decoding: frame.bytes.dropFirst(4), as: UTF8.self) == member)
    }

    @Test func membersComeInAnyOrder() throws {
        let seen = try reading(#"{"b":[1,[2],{"c":3}],"a":{"x":"y"},"é":true}"#) { reader throws(FrameFault) in
            var seen: [String] = []
            try reader.object { (reader, key) throws(FrameFault) in
                if reader.isKey(key, "a") {
                    try reader.object { (reader, _) throws(FrameFault) in seen.append(try reader.text()) }
                } else if reader.isKey(key, "b") {
                    try reader.array { (reader) throws(FrameFault) in
                        let text = try reader.json()
                        seen.append(String(decoding: reader.bytes(text), as: UTF8.self))
                    }
                } else {
                    seen.append("\(try reader.bool())")
                }
            }
            return seen
        }
        #expect(seen == ["1", "[2]", #"{"c":3}"#, "y", "true"])
    }

    @Test(arguments: [
        "", "{", "[]", "{}{}", "{} x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{\"a\":\"\u{1}\"}", #"{"a":"\x"}"#,
        #"{"a":"\ud800"}"#, "{\"a\":tru}", "nul",
    ])
    func whatIsNoObjectIsAFault(text: String) {
        #expect(throws: FrameFault.self) {
            try reading(text) { reader throws(FrameFault) in
                try reader.object { (reader, _) throws(FrameFault) in try reader.skip() }
            }
        }
    }

    @Test(arguments: ["0", "9", "10", "100", "9223372036854775807"])
    func countsComeBack(text: String) throws {
        let count = try reading(text) { reader throws(FrameFault) in try reader.count() }
        var frame = FrameWriter()
        frame.begin()
        frame.integer(count)
        #expect(String(decoding: frame.bytes.dropFirst(4), as: UTF8.self) == text)
    }

    @Test(arguments: [
        "-1", "-0", "1.0", "0.5", "1e3", "1E0", "01", "+1", "9223372036854775808", "18446744073709551616",
        "99999999999999999999", "\"1\"", "null",
    ])
    func whatIsNoCountIsAFault(text: String) {
        #expect(throws: FrameFault.self) { try reading(text) { reader throws(FrameFault) in try reader.count() } }
    }

    @Test(arguments: [0, 1, 9, 10, 99, 100, .max, .min, -1, -9, -10])
    func integersAreWrittenOut(value: Int) {
        var frame = FrameWriter()
        frame.begin()
        frame.integer(value)
        #expect(String(decoding: frame.bytes.dropFirst(4), as: UTF8.self) == "\(value)")
    }

    @Test(arguments: [0, 9, 10, 9_999_999_999_999_999_999, 10_000_000_000_000_000_000, .max] as [UInt64])
    func unsignedIntegersAreWrittenOut(value: UInt64) {
        var frame = FrameWriter()
        frame.begin()
        frame.integer(value)
        #expect(String(decoding: frame.bytes.dropFirst(4), as: UTF8.self) == "\(value)")
    }

    @Test func statusesHaveNames() {
        for status in 0...10 {
            let name = "\(StatusName.name(of: status))"
            #expect(Array(name.utf8).withUnsafeBytes { StatusName.status(named: $0) } == status)
        }
        #expect("\(StatusName.name(of: 99))" == "internal")
        #expect(Array("okay".utf8).withUnsafeBytes { StatusName.status(named: $0) } == nil)
    }
}
