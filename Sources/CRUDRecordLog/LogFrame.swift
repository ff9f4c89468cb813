import CLinux

/// The bytes of one commit, as they stand in a segment: a header, and a payload that the log does not look into.
///
///     offset  size
///          0     4  CRC-32C of all that follows, continued from that of the log's identity and the segment's number
///          4     4  size of the payload
///          8     8  number of the commit: one more than that of the last one
///         16     8  number of the oldest segment that is needed from this commit on
///         24     8  the greatest sequence number that was ever used
///         32        payload, and zeros up to a multiple of 8
///
/// Numbers are in the machine's order, as everywhere in a log.
package final class LogFrame {
    static let headerBytes = 32
    static let alignment = 8

    private var memory: UnsafeMutableRawBufferPointer
    /// How many bytes there are, without the zeros at the end.
    private var end = headerBytes

    package init() {
        memory = .allocate(byteCount: 4096, alignment: Self.alignment)
    }

    deinit { memory.deallocate() }

    /// How many bytes the payload has so far.
    package var payloadBytes: Int { end - Self.headerBytes }

    /// The payload so far, until something is appended.
    package var payload: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[Self.headerBytes..<end])
    }

    /// Begins with an empty payload.
    package func reset() {
        // What one long batch needed is not kept for all others.
        if memory.count > 1 << 20 {
            memory.deallocate()
            memory = .allocate(byteCount: 4096, alignment: Self.alignment)
        }
        end = Self.headerBytes
    }

    package func append(_ bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        // There is as much memory.
        UnsafeMutableRawBufferPointer(rebasing: memory[end..<end + bytes.count]).copyMemory(from: bytes)
        end += bytes.count
    }

    /// Appends the bytes of a value that has no padding.
    package func append(_ value: some BitwiseCopyable) {
        withUnsafeBytes(of: value) { append($0) }
    }

    private func reserve(_ count: Int) {
        guard end + count + Self.alignment > memory.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(2 * memory.count, end + count + Self.alignment), alignment: Self.alignment)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<end]))
        memory.deallocate()
        memory = larger
    }

    // MARK: In a segment

    /// How many bytes it takes in a segment.
    var bytes: Int { Self.bytes(ofPayload: payloadBytes) }

    static func bytes(ofPayload count: Int) -> Int { headerBytes + (count + alignment - 1) / alignment * alignment }

    /// Lends the whole frame.
    func sealed(_ header: Header, seed: UInt32) -> UnsafeRawBufferPointer {
        let size = bytes
        for index in end..<size { memory[index] = 0 }
        memory.storeBytes(of: UInt32(payloadBytes), toByteOffset: 4, as: UInt32.self)
        memory.storeBytes(of: header.number, toByteOffset: 8, as: UInt64.self)
        memory.storeBytes(of: header.oldestSegment, toByteOffset: 16, as: UInt64.self)
        memory.storeBytes(of: header.lastSequence, toByteOffset: 24, as: UInt64.self)
        let frame = UnsafeRawBufferPointer(rebasing: memory[..<size])
        memory.storeBytes(of: Self.checksum(of: frame, seed: seed), toByteOffset: 0, as: UInt32.self)
        return frame
    }

    struct Header {
        var number: UInt64
        var oldestSegment: UInt64
        var lastSequence: UInt64
    }

    private static func checksum(of frame: UnsafeRawBufferPointer, seed: UInt32) -> UInt32 {
        // A frame has more bytes than the checksum.
        unsafe clinux_crc32c(seed, frame.baseAddress! + 4, frame.count - 4)
    }

    /// Reads a frame; nil if there is none with one of these numbers.
    ///
    /// - Parameter segment: the bytes of a segment.
    static func read(
        _ segment: UnsafeRawBufferPointer, at offset: Int, numbers: ClosedRange<UInt64>, seed: UInt32
    ) -> (header: Header, payload: UnsafeRawBufferPointer, end: Int)? {
        guard offset + headerBytes <= segment.count else { return nil }
        func integer<Integer: FixedWidthInteger & BitwiseCopyable>(_ position: Int, _: Integer.Type) -> Integer {
            segment.loadUnaligned(fromByteOffset: offset + position, as: Integer.self)
        }
        let header = Header(
            number: integer(8, UInt64.self), oldestSegment: integer(16, UInt64.self),
            lastSequence: integer(24, UInt64.self))
        guard numbers.contains(header.number) else { return nil }
        let size = Int(integer(4, UInt32.self))
        let end = offset + bytes(ofPayload: size)
        guard end <= segment.count else { return nil }
        let frame = UnsafeRawBufferPointer(rebasing: segment[offset..<end])
        guard checksum(of: frame, seed: seed) == integer(0, UInt32.self) else { return nil }
        return (header, UnsafeRawBufferPointer(rebasing: frame[headerBytes..<headerBytes + size]), end)
    }
}
