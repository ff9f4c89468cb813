import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

// A reply is written where it is sent from: at the end of a session's output, or of the responses of a batch array.
// What turns out to be an error, too long, or not available yet is truncated again, so that no reply is ever copied.

extension StreamBuffer {
    /// The most bytes of a response without items, the id of its request apart.
    static let responseBytesWithoutItem = 512
    /// The most bytes of a record without its item: an id of 512 bytes, all escaped, and a revision.
    static let recordBytesWithoutItem = 4096

    /// Appends a response as a frame of its own.
    ///
    /// - Parameters:
    ///   - id: the request's, as it was sent; nil for null.
    ///   - maximumBytes: the longest frame.
    ///   - result: appends the value of `result`; returns false where that is not available yet.
    /// - Returns: how the request has ended; nil where `result` returned false, and nothing has been appended.
    mutating func appendFrame(
        to id: Span<UInt8>?, maximumBytes: Int, _ result: (inout StreamBuffer) throws(CRUDError) -> Bool
    ) -> RequestOutcome? {
        let start = count
        append(bigEndian: 0)
        let outcome = appendResponse(to: id, maximumBytes: maximumBytes, frameBytes: maximumBytes, result)
        guard let outcome else {
            truncate(to: start)
            // There was no room for a long result, so there is none for its memory.
            shrink()
            return nil
        }
        let size = count - start - FrameHeader.size
        if size > maximumBytes {
            // Only a long id makes an error that long; it is left out then.
            truncate(to: start)
            return appendFrame(to: nil, maximumBytes: .max) { _ throws(CRUDError) in
                throw .replyTooLong(maximumBytes: maximumBytes)
            }
        }
        overwrite(at: start, bigEndian: UInt32(truncatingIfNeeded: size))
        return outcome
    }

    /// Appends a response: its result, or the error that `result` throws.
    ///
    /// - Parameters:
    ///   - maximumBytes: how long it may be; a longer result is replaced by an error.
    ///   - frameBytes: the longest frame, for that error.
    /// - Returns: how the request has ended; nil where `result` returned false: the caller has to truncate what has
    ///   been appended.
    mutating func appendResponse(
        to id: Span<UInt8>?, maximumBytes: Int, frameBytes: Int,
        _ result: (inout StreamBuffer) throws(CRUDError) -> Bool
    ) -> RequestOutcome? {
        let start = count
        append(#"{"jsonrpc":"2.0","id":"#)
        if let id { append(id) } else { append("null") }
        let end = count
        do throws(CRUDError) {
            append(#","result":"#)
            guard try result(&self) else { return nil }
            append(UInt8(ascii: "}"))
            if count - start > maximumBytes { throw .replyTooLong(maximumBytes: frameBytes) }
            return .ok
        } catch {
            truncate(to: end)
            // A long result is not to leave its memory.
            shrink()
            append(#","error":"#)
            append(error)
            append(UInt8(ascii: "}"))
            return RequestOutcome(error.code)
        }
    }

    /// How a request has ended to which nobody reads a reply.
    ///
    /// - Parameter result: as of ``appendFrame(to:maximumBytes:_:)``.
    static func outcome(of result: (inout StreamBuffer) throws(CRUDError) -> Bool) -> RequestOutcome? {
        var scratch = StreamBuffer()
        do throws(CRUDError) { return try result(&scratch) ? .ok : nil } catch { return RequestOutcome(error.code) }
    }

    /// Appends an error object. What it quotes of the request is cut, so that it is never longer than a few kilobytes.
    mutating func append(_ error: CRUDError) {
        var writer = JSONWriter()
        error.cut(to: Self.maximumQuotedBytes).write(to: &writer)
        append(writer.bytes.span)
    }

    private static let maximumQuotedBytes = 512

    /// Appends a JSON object with the members that `members` writes.
    mutating func appendObject(_ members: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(members)
        append(writer.bytes.span)
    }

    /// Appends a JSON array of strings that are quoted already.
    mutating func appendArray(ofStrings strings: some Sequence<ArraySlice<UInt8>>) {
        append(UInt8(ascii: "["))
        var isFirst = true
        for string in strings {
            if !isFirst { append(UInt8(ascii: ",")) }
            isFirst = false
            append(string.span)
        }
        append(UInt8(ascii: "]"))
    }

    /// Appends the content of a JSON string. What the host makes needs no escape; what somebody has edited may.
    mutating func append(escaped content: UnsafeRawBufferPointer) {
        if content.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            append(content)
        } else {
            var escaped: [UInt8] = []
            for byte in String(decoding: content, as: UTF8.self).utf8 { escaped.appendJSONEscaped(byte) }
            append(escaped.span)
        }
    }

    /// Sends an error over a connection that is not going to be served, as far as the socket takes it at once.
    static func send(_ error: CRUDError, overRejected descriptor: CInt) {
        var frame = StreamBuffer()
        _ = frame.appendFrame(to: nil, maximumBytes: .max) { _ throws(CRUDError) in throw error }
        // Nothing is to be done for a peer that does not read, or is gone.
        _ = Glibc.send(descriptor, frame.bytes.baseAddress, frame.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
}

extension CRUDError {
    /// In place of a reply that is longer than a frame may be.
    static func replyTooLong(maximumBytes: Int) -> CRUDError {
        limit("frame_bytes", maximumBytes, "the reply would be longer than a frame")
    }

    /// `limit_exceeded` of a limit, by its name in the configuration.
    static func limit(_ name: String, _ maximum: Int, _ message: String) -> CRUDError {
        CRUDError(.limitExceeded, message, details: .init(limit: name, maximum: maximum))
    }
}

extension CRUDError {
    /// This error, with no text in it longer than so many bytes; the errors of a configuration are no peer's text.
    fileprivate func cut(to maximum: Int) -> CRUDError {
        guard code != .invalidConfiguration else { return self }
        var error = self
        error.message = message.cut(to: maximum)
        error.details.member = details.member?.cut(to: maximum)
        // JSON that is cut is none.
        if details.node?.utf8.count ?? 0 > maximum { error.details.node = nil }
        error.details.path = details.path?.cut(to: maximum)
        return error
    }
}

extension String {
    fileprivate func cut(to maximum: Int) -> String {
        guard utf8.count > maximum else { return self }
        var end = utf8.index(startIndex, offsetBy: maximum)
        while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return self[..<end] + "…"
    }
}
