import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// What a frame is made of, and what comes out of it again.
@Suite struct FrameTests {
    /// Reads a text as the head of a frame.
    private func reading<Result>(
        _ head: String, _ body: (inout FrameReader) throws(ProtocolViolation) -> Result
    ) throws(ProtocolViolation) -> Result {
        try readFrame(frame(head), body)
    }

    /// The head that a closure writes.
    private func head(_ body: (inout FrameWriter) -> Void) -> String {
        String(decoding: writtenFrame(body).dropFirst(FrameWriter.headerBytes), as: UTF8.self)
    }

    @Test func beginsWithItsLengths() {
        let bytes = writtenFrame { writer in
            writer.raw("[")
            Array("ab".utf8).withUnsafeBytes { writer.bytes($0) }
            writer.raw(",")
            Array(repeating: UInt8(ascii: "c"), count: 300).withUnsafeBytes { writer.bytes($0) }
            writer.raw("]")
        }
        let text = "[2,300]ab" + String(repeating: "c", count: 300)
        #expect(bytes == [0, 0, 1, 57, 0, 0, 0, 7] + Array(text.utf8))
    }

    /// A short payload is sent with the head, a long one from where it is; the bytes are the same.
    @Test(arguments: [0, 1, 4096, 4097, 100_000])
    func piecesFollowEachOther(size: Int) {
        let payload = Array(repeating: UInt8(ascii: "p"), count: size)
        var writer = FrameWriter()
        for _ in 0..<2 {
            writer.begin()
            payload.withUnsafeBytes { writer.bytes($0) }
            writer.end()
            #expect(writer.count == 4 + "\(size)".utf8.count + size)
            let pieces = writer.withPieces { front, rest in Array(front) + Array(rest) }
            #expect(pieces == frame("\(size)", String(decoding: payload, as: UTF8.self)))
            #expect(writer.withBytes { bytes in bytes.withUnsafeBufferPointer { Array($0) } } == pieces)
        }
    }

    @Test(arguments: ["", "plain", "\"quoted\\\"", "\u{0}\u{1F}\n\t", "é😀", String(repeating: "\n", count: 5000)])
    func stringsComeBack(text: String) throws {
        let head = head { writer in Array(text.utf8).withUnsafeBytes { writer.string($0) } }
        #expect(try reading(head) { reader throws(ProtocolViolation) in try reader.text() } == text)
    }

    /// Bytes are taken in the order in which their lengths stand in the head.
    @Test func bytesComeBack() throws {
        let contents: [[UInt8]] = [(0...255).map { UInt8($0) }, [], Array("{\"a\":\n".utf8), [0, 0, 0]]
        let bytes = writtenFrame { writer in
            writer.raw("[")
            for (index, content) in contents.enumerated() {
                if index > 0 { writer.raw(",") }
                content.withUnsafeBytes { writer.bytes($0) }
            }
            writer.raw("]")
        }
        let read = try readFrame(bytes) { reader throws(ProtocolViolation) in
            var read: [[UInt8]] = []
            try reader.array { (reader) throws(ProtocolViolation) in read.append(Array(try reader.bytes())) }
            return read
        }
        #expect(read == contents)
    }

    @Test func membersComeInAnyOrder() throws {
        let seen = try reading(#"{"b":[1,[2],{"c":3}],"a":{"x":"y"},"\u00e9":true}"#) {
            reader throws(ProtocolViolation) in
            var seen: [String] = []
            try reader.object { (reader, key) throws(ProtocolViolation) in
                switch key {
                case "a":
                    try reader.object { (reader, _) throws(ProtocolViolation) in seen.append(try reader.text()) }
                case "b":
                    try reader.array { (reader) throws(ProtocolViolation) in
                        seen.append(String(decoding: try reader.json(), as: UTF8.self))
                    }
                case "é": seen.append("\(try reader.bool())")
                default: seen.append("another key, \(key.text)")
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
    func whatIsNotAnObjectIsAViolation(head: String) {
        #expect(throws: ProtocolViolation.self) {
            try reading(head) { reader throws(ProtocolViolation) in
                try reader.object { (reader, _) throws(ProtocolViolation) in try reader.skip() }
            }
        }
    }

    /// Lengths that do not fit what has come.
    @Test(
        arguments: [
            [0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 3, 0, 0, 0], [0, 0, 0, 4, 0, 0, 0, 1],
            [0, 0, 0, 6, 0, 0, 0, 3, 0x7B, 0x7D], [0, 0, 0, 6, 0xFF, 0xFF, 0xFF, 0xFF, 0x7B, 0x7D],
        ] as [[UInt8]])
    func headsThatDoNotFitAreViolations(bytes: [UInt8]) {
        #expect(throws: ProtocolViolation.self) {
            try readFrame(bytes) { reader throws(ProtocolViolation) in try reader.skip() }
        }
    }

    @Test(arguments: [
        ("3", "ab"), ("2", "abc"), ("18446744073709551615", "ab"), ("9223372036854775807", "ab"), ("0", "a"),
    ])
    func payloadsThatDoNotFitAreViolations(head: String, payload: String) {
        #expect(throws: ProtocolViolation.self) {
            try readFrame(frame(head, payload)) { reader throws(ProtocolViolation) in _ = try reader.bytes() }
        }
    }

    @Test func aPayloadMayBePassedOver() throws {
        try readFrame(frame("[1]", "a")) { reader throws(ProtocolViolation) in
            try reader.skip()
            reader.skipPayload()
        }
    }

    @Test(arguments: ["0", "9", "10", "100", "9223372036854775807"])
    func countsComeBack(text: String) throws {
        let count = try reading(text) { reader throws(ProtocolViolation) in try reader.count() }
        #expect(head { $0.integer(count) } == text)
    }

    @Test(arguments: [
        "-1", "-0", "1.0", "0.5", "1e3", "1E0", "01", "+1", "9223372036854775808", "18446744073709551616",
        "99999999999999999999", "\"1\"", "null",
    ])
    func whatIsNotACountIsAViolation(text: String) {
        #expect(throws: ProtocolViolation.self) {
            try reading(text) { reader throws(ProtocolViolation) in try reader.count() }
        }
    }

    @Test(arguments: [0, 1, 9, 10, 99, 100, .max, .min, -1, -9, -10])
    func integersAreWrittenOut(value: Int) throws {
        #expect(head { $0.integer(value) } == "\(value)")
        #expect(try reading("\(value)") { reader throws(ProtocolViolation) in try reader.signedInteger() } == value)
    }

    @Test(arguments: [0, 9, 10, 9_999_999_999_999_999_999, 10_000_000_000_000_000_000, .max] as [UInt64])
    func unsignedIntegersAreWrittenOut(value: UInt64) throws {
        #expect(head { $0.integer(value) } == "\(value)")
        #expect(try reading("\(value)") { reader throws(ProtocolViolation) in try reader.integer() } == value)
    }
}
