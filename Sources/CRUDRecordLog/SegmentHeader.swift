import CLinux

/// What a segment begins with. Frames begin behind the block that it is in.
///
///     offset  size
///          0     8  "CRUDDLOG"
///          8     4  version of the format: 1
///         12     4  CRC-32C of the header with zeros here
///         16     8  identity of the log
///         24     8  number of the segment: one more than that of the one before
///         32     8  number of its first commit
///         40     8  size of the file
struct SegmentHeader {
    static let bytes = 48
    /// What the header has for itself, so that it is written without what follows.
    static let blockBytes = 4096
    static let version: UInt32 = 1
    private static let magic: [UInt8] = Array("CRUDDLOG".utf8)

    var identity: UInt64
    var serial: UInt64
    var firstCommit: UInt64
    var fileBytes: UInt64

    enum Content {
        case header(SegmentHeader)
        /// Nothing but zeros, or less than a header.
        case none
        /// A header of another version.
        case version(UInt32)
        case damaged
    }

    static func read(_ block: UnsafeRawBufferPointer) -> Content {
        guard block.count >= bytes else { return .none }
        let stored = UnsafeRawBufferPointer(rebasing: block[..<Self.bytes])
        if stored.allSatisfy({ $0 == 0 }) { return .none }
        func integer<Integer: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Integer.Type) -> Integer {
            stored.loadUnaligned(fromByteOffset: offset, as: Integer.self)
        }
        guard stored.prefix(magic.count).elementsEqual(magic) else { return .damaged }
        let version = integer(8, UInt32.self)
        if version != Self.version { return .version(version) }
        let header = SegmentHeader(
            identity: integer(16, UInt64.self), serial: integer(24, UInt64.self),
            firstCommit: integer(32, UInt64.self), fileBytes: integer(40, UInt64.self))
        return stored.elementsEqual(header.stored) ? .header(header) : .damaged
    }

    var stored: [UInt8] {
        var block = [UInt8](repeating: 0, count: Self.bytes)
        block.withUnsafeMutableBytes { block in
            block.copyBytes(from: Self.magic)
            block.storeBytes(of: Self.version, toByteOffset: 8, as: UInt32.self)
            block.storeBytes(of: identity, toByteOffset: 16, as: UInt64.self)
            block.storeBytes(of: serial, toByteOffset: 24, as: UInt64.self)
            block.storeBytes(of: firstCommit, toByteOffset: 32, as: UInt64.self)
            block.storeBytes(of: fileBytes, toByteOffset: 40, as: UInt64.self)
            // The block has as many bytes.
            let checksum = unsafe clinux_crc32c(0, block.baseAddress, block.count)
            block.storeBytes(of: checksum, toByteOffset: 12, as: UInt32.self)
        }
        return block
    }

    /// Where the checksums of a segment's frames begin: what an earlier use of its file has left is not valid in it,
    /// nor what a client has put into an item.
    static func seed(identity: UInt64, serial: UInt64) -> UInt32 {
        var seed: UInt32 = 0
        for number in [identity, serial] {
            seed = withUnsafeBytes(of: number) { unsafe clinux_crc32c(seed, $0.baseAddress, $0.count) }
        }
        return seed
    }
}
