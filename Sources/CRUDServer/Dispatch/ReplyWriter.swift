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
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private(set) var buffer = StreamBuffer()

    var count: Int { buffer.count }

    /// How long a response without items is at the most, but for its request's id.
    static let sizeWithoutItem = 512

    /// Begins a response with a result, which is to be written next.
    ///
    /// - Parameter id: the request's, as it was sent; nil for null.
    func beginResult(id: Span<UInt8>) {
        begin(id)
        buffer.append(#","result":"#)
    }

    /// Begins a response with a record, up to its id; item and revision and two braces follow.
    ///
    /// - Parameters:
    ///   - id: the request's, as it was sent.
    ///   - recordID: the record's, as it was sent.
    func beginRecord(id: Span<UInt8>, recordID: Span<UInt8>) {
        buffer.beginRecord(id: id, recordID: recordID)
    }

    /// The rest of a record behind its id, but for the brace.
    func append(item: Span<UInt8>, revision: UnsafeRawBufferPointer) {
        buffer.append(item: item, revision: revision)
    }

    /// Ends the response.
    func end() {
        buffer.append(UInt8(ascii: "}"))
    }

    /// Begins the entry of one operation among the results of several; its result is to be written next.
    func beginEntry() {
        buffer.truncate(to: 0)
        buffer.append(#"{"result":"#)
    }

    /// The whole entry of an operation that has failed.
    func errorEntry(_ error: CRUDError) {
        buffer.truncate(to: 0)
        buffer.append(#"{"error":"#)
        appendObject(error)
    }

    /// What has been written, in memory of its own.
    func copy() -> [UInt8] { Array(buffer.bytes) }

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
        appendObject(error)
    }

    private func appendObject(_ error: CRUDError) {
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

    /// `,"revision":…`.
    func append(revision: UnsafeRawBufferPointer) { buffer.append(revision: revision) }

    /// Copies the finished response as a frame of its own.
    func moveFrame(to output: inout StreamBuffer) {
        output.append(bigEndian: UInt32(truncatingIfNeeded: count))
        move(to: &output)
    }

    /// Copies the finished response to where it is to go, and gives back the memory of an unusually long one.
    func move(to output: inout StreamBuffer) {
        output.append(buffer)
        if buffer.count > 1 << 20 { buffer = StreamBuffer() }
    }

    /// Writes the response to a connection that is not going to be served, as far as it takes it at once.
    func send(to descriptor: CInt) {
        var frame = StreamBuffer()
        moveFrame(to: &frame)
        // A peer that does not take it, or is gone, does without.
        _ = Glibc.send(
            descriptor, frame.bytes.baseAddress, frame.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
}

// Several appends in one access: each access to a class's property is checked at run time.
extension StreamBuffer {
    fileprivate mutating func beginRecord(id: Span<UInt8>, recordID: Span<UInt8>) {
        truncate(to: 0)
        append(#"{"jsonrpc":"2.0","id":"#)
        append(id)
        append(#","result":{"id":"#)
        append(recordID)
    }

    fileprivate mutating func append(item: Span<UInt8>, revision: UnsafeRawBufferPointer) {
        append(#","item":"#)
        append(item)
        append(revision: revision)
    }

    /// Ours are plain; a revision that somebody has written by hand may be anything.
    fileprivate mutating func append(revision: UnsafeRawBufferPointer) {
        append(#","revision":""#)
        if revision.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            append(revision)
        } else {
            var escaped: [UInt8] = []
            for byte in String(decoding: revision, as: UTF8.self).utf8 { escaped.appendJSONEscaped(byte) }
            append(escaped.span)
        }
        append(UInt8(ascii: "\""))
    }
}
