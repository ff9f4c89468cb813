import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

/// Where one response takes shape before it is copied to its session's output or into a batch's answer.
///
/// There is one for each event loop; a reply is written from its start to its end before the next begins. Being a place
/// of its own, it can be begun anew when a read turns out to find nothing, and be measured before anything is sent.
final class ReplyWriter {
    /// The response so far.
    private(set) var buffer = StreamBuffer()

    var count: Int { buffer.count }

    /// Begins a response with a result, which is to be written next.
    ///
    /// - Parameter id: the request's, as it was sent; nil for null.
    func beginResult(id: Span<UInt8>) {
        begin(id)
        buffer.append(#","result":"#)
    }

    /// Ends the response.
    func end() {
        buffer.append(UInt8(ascii: "}"))
    }

    /// A whole response with an error, to a request with that id.
    func error(_ error: CRUDError, id: Span<UInt8>) {
        begin(id)
        append(error)
    }

    /// A whole response with an error, to nothing that has an id.
    func error(_ error: CRUDError) {
        begin([UInt8]("null".utf8).span)
        append(error)
    }

    private func append(_ error: CRUDError) {
        buffer.append(#","error":"#)
        var writer = JSONWriter()
        error.write(to: &writer)
        buffer.append(writer.bytes.span)
        end()
    }

    /// The same for an id in a batch's memory.
    func beginResult(id: UnsafeRawBufferPointer) {
        // The buffer is valid during this call.
        unsafe beginResult(id: id.bindMemory(to: UInt8.self).span)
    }

    /// The same for an id in a batch's memory.
    func error(_ error: CRUDError, id: UnsafeRawBufferPointer) {
        // The buffer is valid during this call.
        unsafe self.error(error, id: id.bindMemory(to: UInt8.self).span)
    }

    private func begin(_ id: Span<UInt8>) {
        buffer.truncate(to: 0)
        buffer.append(#"{"jsonrpc":"2.0","id":"#)
        buffer.append(id)
    }

    // MARK: Parts of a result

    func append(_ text: StaticString) { buffer.append(text) }

    func append(_ bytes: Span<UInt8>) { buffer.append(bytes) }

    func append(_ bytes: UnsafeRawBufferPointer) { buffer.append(bytes) }

    /// A JSON string of what a plugin has stored: a revision. Ours are plain; one that somebody has written by hand may
    /// be anything.
    func appendString(_ bytes: UnsafeRawBufferPointer) {
        if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            buffer.append(UInt8(ascii: "\""))
            buffer.append(bytes)
            buffer.append(UInt8(ascii: "\""))
        } else {
            var text: [UInt8] = []
            text.appendJSONString(String(decoding: bytes, as: UTF8.self).utf8)
            buffer.append(text.span)
        }
    }

    /// Copies the finished response to where it is to go, and gives back the memory of an unusually long one.
    func move(to output: inout StreamBuffer) {
        output.append(buffer)
        if buffer.count > 1 << 20 { buffer = StreamBuffer() }
    }

    /// Writes the response to a connection that is not going to be served, as far as it takes it at once.
    func send(to descriptor: CInt) {
        var frame = StreamBuffer()
        frame.append(bigEndian: UInt32(truncatingIfNeeded: count))
        move(to: &frame)
        // A peer that does not take it, or is gone, does without.
        _ = Glibc.send(
            descriptor, frame.bytes.baseAddress, frame.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
}
