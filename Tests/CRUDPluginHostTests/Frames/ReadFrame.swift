@testable import CRUDPluginHost

/// Reads bytes as a frame, all of it.
///
/// - Parameter bytes: with the frame's length in front.
func readFrame<Result>(
    _ bytes: [UInt8], _ body: (inout FrameReader) throws(ProtocolViolation) -> Result
) throws(ProtocolViolation) -> Result {
    var reader = FrameReader()
    return try bytes.span.withUnsafeBytes { bytes throws(ProtocolViolation) in
        try reader.begin(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(FrameWriter.lengthBytes)))
        let result = try body(&reader)
        try reader.expectEnd()
        return result
    }
}

/// A frame, whatever its head and its payload are.
func frame(_ head: String, _ payload: String = "") -> [UInt8] {
    func length(_ count: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(count).bigEndian, Array.init) }
    let head = Array(head.utf8)
    let payload = Array(payload.utf8)
    return length(4 + head.count + payload.count) + length(head.count) + head + payload
}

/// A frame that a closure writes.
func writtenFrame(_ body: (inout FrameWriter) -> Void) -> [UInt8] {
    var writer = FrameWriter()
    writer.begin()
    body(&writer)
    writer.end()
    return writer.withBytes { bytes in bytes.withUnsafeBufferPointer { Array($0) } }
}
