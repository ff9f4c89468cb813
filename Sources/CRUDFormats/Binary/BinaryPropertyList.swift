/// The parts of a binary property list, `bplist00`, as CoreFoundation defines them in CFBinaryPList.c
/// (https://github.com/swiftlang/swift-corelibs-foundation/blob/main/Sources/CoreFoundation/CFBinaryPList.c).
///
/// Eight bytes of header; the objects, each a marker byte and what belongs to it; a table of the objects' offsets; a
/// trailer of 32 bytes: six of no meaning, how many bytes an offset and a reference take, then three numbers of eight
/// bytes: how many objects there are, which is the top, where the table stands. Everything is big-endian. An array is a
/// list of references to objects by number, a dictionary one of its keys and one of its values.
enum BinaryPropertyList {
    static let header = Array("bplist00".utf8)
    static let trailerSize = 32

    /// The upper half of a marker; the lower one is a size, or 15 for one that follows as an integer.
    enum Marker {
        static let null: UInt8 = 0x00
        static let `false`: UInt8 = 0x08
        static let `true`: UInt8 = 0x09
        /// With the size's binary logarithm: of 1, 2 or 4 bytes unsigned, of 8 or 16 signed.
        static let integer: UInt8 = 0x10
        /// With the size's binary logarithm, 4 or 8 bytes.
        static let real: UInt8 = 0x20
        static let date: UInt8 = 0x30
        static let data: UInt8 = 0x40
        static let asciiString: UInt8 = 0x50
        /// UTF-16; the size counts units.
        static let unicodeString: UInt8 = 0x60
        static let uid: UInt8 = 0x80
        static let array: UInt8 = 0xA0
        static let dictionary: UInt8 = 0xD0
    }
}
