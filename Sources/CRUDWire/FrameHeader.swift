/// The four bytes before every frame: the length of its JSON, unsigned, big-endian.
package enum FrameHeader {
    package static let size = 4

    /// The length in the header at the start of `bytes`, of which there are at least ``size``.
    package static func length(_ bytes: Span<UInt8>) -> Int {
        Int(bytes[0]) << 24 | Int(bytes[1]) << 16 | Int(bytes[2]) << 8 | Int(bytes[3])
    }

    /// The header of a frame of `length` bytes of JSON.
    package static func bytes(length: Int) -> [UInt8] {
        let length = UInt32(truncatingIfNeeded: length)
        return [
            UInt8(truncatingIfNeeded: length >> 24), UInt8(truncatingIfNeeded: length >> 16),
            UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
        ]
    }
}
