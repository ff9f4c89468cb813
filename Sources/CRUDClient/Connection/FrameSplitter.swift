import CRUDModel
import CRUDWire
import NIOCore

/// Splits the stream of bytes from the daemon into frames.
struct FrameSplitter {
    static let headerBytes = FrameHeader.size

    /// Bytes that do not make a whole frame yet.
    private var buffer = ByteBuffer()

    /// A frame's JSON, or the length of one that is too long.
    enum Frame {
        case json(ByteBuffer)
        case tooLong(Int)
    }

    mutating func append(_ bytes: ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            // Otherwise the frames that were read already would stay in memory.
            buffer.discardReadBytes()
            buffer.writeImmutableBuffer(bytes)
        }
    }

    /// The next frame; nil until more bytes arrive.
    ///
    /// Its length is limited by what a daemon may be configured to send: the limit of an open connection can change.
    mutating func next() -> Frame? {
        guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self).map(Int.init) else { return nil }
        guard length <= DefaultLimits.maximumFrameBytes else { return .tooLong(length) }
        guard buffer.readableBytes >= Self.headerBytes + length else { return nil }
        buffer.moveReaderIndex(forwardBy: Self.headerBytes)
        return buffer.readSlice(length: length).map(Frame.json)
    }
}
