import CRUDWire
import NIOCore

/// Cuts the stream of bytes that a daemon sends into frames.
struct FrameReader {
    static let headerBytes = FrameHeader.size

    /// The bytes of a frame that has not arrived whole yet.
    private var rest = ByteBuffer()

    /// What came: a frame's JSON, or the length of one that is longer than it may be.
    enum Frame {
        case json(ByteBuffer)
        case tooLong(Int)
    }

    mutating func append(_ bytes: ByteBuffer) {
        if rest.readableBytes == 0 {
            rest = bytes
        } else {
            // Without this the frames already read would pile up in front of the one that is on its way.
            rest.discardReadBytes()
            rest.writeImmutableBuffer(bytes)
        }
    }

    /// The next frame; nil until more bytes come.
    mutating func next(maximumFrameBytes: Int) -> Frame? {
        guard let length = rest.getInteger(at: rest.readerIndex, as: UInt32.self).map(Int.init) else { return nil }
        guard length <= maximumFrameBytes else { return .tooLong(length) }
        guard rest.readableBytes >= Self.headerBytes + length else { return nil }
        rest.moveReaderIndex(forwardBy: Self.headerBytes)
        return rest.readSlice(length: length).map(Frame.json)
    }
}
