import CRUDPluginABI
import Testing

@testable import CRUDPluginHost

/// What a child may send, and what it may not.
@Suite struct ChildMessageTests {
    /// What a frame comes to, in words.
    private func message(
        _ bytes: [UInt8], replyTo number: Int? = 7, isWanted: Bool = true
    ) throws(ProtocolViolation) -> String {
        var reader = FrameReader()
        return try bytes.span.withUnsafeBytes { bytes throws(ProtocolViolation) in
            try reader.begin(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(FrameWriter.lengthBytes)))
            var read = ""
            let message = try reader.message(replyTo: number, isWanted: isWanted) { reader throws(ProtocolViolation) in
                let result = try reader.json()
                read = String(decoding: result, as: UTF8.self)
                reader.skipPayload()
                return read != "{}"
            }
            switch message {
            case .progress(let done, let total): return "progress \(done) of \(total)"
            case .state(let isUp, let reason): return "\(isUp ? "up" : "down"): \(reason)"
            case .changed(let name): return "changed \(String(decoding: name, as: UTF8.self))"
            case .reply(let reply):
                guard let failure = reply.failure else {
                    return "result \(read)\(reply.hasMore ? ", more" : "")\(reply.isWanted ? "" : ", enough")"
                }
                return "failure \(failure.status): \(failure.message) (\(failure.pointer))"
            }
        }
    }

    @Test(arguments: [
        (#"{"id":7,"result":[1]}"#, "result [1]"), (#"{"id":7,"result":{}}"#, "result {}, enough"),
        (#"{"id":7,"result":[1],"more":true}"#, "result [1], more"),
        (#"{"id":7,"result":[1],"more":false,"further":[{}]}"#, "result [1]"),
        (#"{"id":7,"error":{"status":"corrupt","message":"a\nb"}}"#, "failure 7: a\nb ()"),
        (
            #"{"id":7,"error":{"status":"invalid_options","message":"m","pointer":"/p","x":1}}"#, "failure 9: m (/p)"
        ),
        (#"{"id":7,"error":{"status":"interrupted"}}"#, "failure 11:  ()"),
        (#"{"method":"progress","params":{"done":3,"total":9}}"#, "progress 3 of 9"),
        (#"{"method":"progress","params":{}}"#, "progress 0 of 0"),
        (#"{"method":"state","params":{"up":false,"reason":"gone"}}"#, "down: gone"),
        (#"{"method":"state","params":{"up":true}}"#, "up: "),
        (#"{"method":"changed","params":{"name":"a\"b"}}"#, #"changed a"b"#),
        (#"{"method":"changed","params":{"name":"a","x":12}}"#, "changed a"),
    ])
    func areUnderstood(head: String, text: String) throws {
        #expect(try message(frame(head)) == text)
    }

    @Test func whatIsNotWantedIsPassedOver() throws {
        let bytes = frame(#"{"id":7,"result":{"records":[{"index":12}]}}"#, "abc")
        #expect(try message(bytes, isWanted: false) == "result , enough")
    }

    @Test(arguments: [
        "{}", "[]", "1", #"{"id":8,"result":{}}"#, #"{"id":7}"#, #"{"result":{},"id":7}"#, #"{"id":"7","result":{}}"#,
        #"{"id":7,"result":{},"error":{"status":"corrupt"}}"#, #"{"id":7,"error":{"status":"ok"}}"#,
        #"{"id":7,"error":{"status":"no idea"}}"#, #"{"id":7,"error":{}}"#, #"{"id":7,"error":"corrupt"}"#,
        #"{"id":7,"error":{"status":"corrupt"},"more":true}"#, #"{"id":7,"result":{},"result":{},"error":{}}"#,
        #"{"method":"progress"}"#, #"{"method":"other","params":{}}"#, #"{"method":"state","params":{}}"#,
        #"{"params":{"up":true},"method":"state"}"#, #"{"method":"progress","params":{"done":-1}}"#,
        #"{"method":"changed","params":{}}"#, #"{"method":"changed","params":{"name":1}}"#,
    ])
    func violationsAreFound(head: String) {
        #expect(throws: ProtocolViolation.self) { try message(frame(head)) }
    }

    @Test func nothingReadsAPayloadThatIsLeft() {
        #expect(throws: ProtocolViolation.self) { try message(frame(#"{"id":7,"error":{"status":"corrupt"}}"#, "x")) }
        #expect(throws: ProtocolViolation.self) {
            try message(frame(#"{"method":"state","params":{"up":true}}"#, "x"))
        }
    }

    @Test func whereNothingWasAskedAReplyIsAViolation() throws {
        #expect(throws: ProtocolViolation.self) { try message(frame(#"{"id":7,"result":{}}"#), replyTo: nil) }
        #expect(try message(frame(#"{"method":"state","params":{"up":true}}"#), replyTo: nil) == "up: ")
    }

    /// What ``FrameWriter`` makes of replies and messages is what is understood.
    @Test func comeBack() throws {
        var writer = FrameWriter()
        func text() throws -> String {
            let bytes = writer.withBytes { bytes in bytes.withUnsafeBufferPointer { Array($0) } }
            return try message(bytes)
        }
        writer.beginReply(to: 7)
        writer.raw(#""a":1"#)
        writer.endReply(hasMore: true)
        #expect(try text() == #"result {"a":1}, more"#)
        writer.beginReply(to: 7)
        writer.endReply()
        #expect(try text() == "result {}, enough")
        writer.failure(PluginFailure(status: CRUDD_NO_SPACE, message: "\"full\"", pointer: "/a"), to: 7)
        #expect(try text() == "failure 6: \"full\" (/a)")
        writer.progress(done: 1, total: .max)
        #expect(try text() == "progress 1 of \(UInt64.max)")
        Array("é".utf8).withUnsafeBytes { writer.state(isUp: false, reason: $0) }
        #expect(try text() == "down: é")
        Array("é".utf8).withUnsafeBytes { writer.changed($0) }
        #expect(try text() == "changed é")
    }
}
