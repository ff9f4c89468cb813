import CRUDJSON
import CRUDModel

/// The keys by which indexes keep records in order.
///
/// A key is one byte for the type of the value, then the value; keys compare byte by byte as the values compare in a
/// sort. Booleans, null, arrays and objects are told apart by their types alone, as in a sort; a missing value is null.
///
/// - A number is the greatest binary64 that is not above it, big-endian, with the sign bit flipped where it is positive
///   and all bits flipped where it is negative, which puts binary64s in the order of their bits. An integer beyond 2⁵³
///   may be above that binary64; the difference, below 2¹¹, follows in two bytes where it is not 0.
/// - A string is its UTF-8, whose order is that of code points. Nothing follows it, so that it needs no end mark.
///
/// A value whose key would be longer than 512 bytes has none.
enum IndexKey {
    static let maximumBytes = 512

    /// The first bytes of keys, in the order of types.
    enum TypeByte {
        static let null: UInt8 = 1
        static let `false`: UInt8 = 2
        static let `true`: UInt8 = 3
        static let number: UInt8 = 4
        static let string: UInt8 = 5
        static let array: UInt8 = 6
        static let object: UInt8 = 7
    }

    /// Appends the key of a value in an item; appends nothing where it would be too long.
    static func append(_ value: JSONSlice, _ item: Span<UInt8>, to bytes: inout [UInt8], _ work: inout Work) {
        switch value.kind {
        case .null: bytes.append(TypeByte.null)
        case .false: bytes.append(TypeByte.false)
        case .true: bytes.append(TypeByte.true)
        case .number: append(ExactNumber(value, item, &work), to: &bytes)
        case .string: append(string: value, item, to: &bytes)
        case .array: bytes.append(TypeByte.array)
        case .object: bytes.append(TypeByte.object)
        }
    }

    private static func append(string: JSONSlice, _ item: Span<UInt8>, to bytes: inout [UInt8]) {
        // An escape of six characters may stand for one byte.
        guard string.content.count < maximumBytes * (string.hasEscapes ? 6 : 1) else { return }
        let start = bytes.count
        bytes.append(TypeByte.string)
        if string.hasEscapes {
            string.appendDecodedString(item, to: &bytes)
            if bytes.count - start > maximumBytes { bytes.removeSubrange(start...) }
        } else {
            bytes.append(item.extracting(string.content))
        }
    }

    private static func append(_ number: ExactNumber, to bytes: inout [UInt8]) {
        var floor: Double
        var remainder: Int64 = 0
        switch number {
        case .binary64(let value): floor = value
        case .integer(let integer):
            floor = Double(integer)
            // The nearest binary64 may be above the integer, 2⁶³ above every integer.
            if floor == 0x1p63 || Int64(floor) > integer { floor = floor.nextDown }
            remainder = integer - Int64(floor)
        }
        let bits = floor.bitPattern
        let ordered = floor.sign == .minus ? ~bits : bits | 1 << 63
        bytes.append(TypeByte.number)
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: ordered >> shift)) }
        if remainder != 0 {
            bytes.append(UInt8(truncatingIfNeeded: remainder >> 8))
            bytes.append(UInt8(truncatingIfNeeded: remainder))
        }
    }

    // MARK: Bounds

    /// A place among keys.
    struct Bound {
        /// The key of the value; where the value has none, the greatest text that is not above it and could be a key.
        var key: [UInt8]
        /// Whether it is the key of the value.
        var isExact = true
    }

    /// Where the records with a value stand among keys. Keys above `key` are those of greater values, whether or not
    /// the value has a key itself.
    static func bound(_ value: SortValue) -> Bound {
        switch value {
        case .null: return Bound(key: [TypeByte.null])
        case .boolean(let value): return Bound(key: [value ? TypeByte.true : TypeByte.false])
        case .number(let number):
            var bytes: [UInt8] = []
            append(number, to: &bytes)
            return Bound(key: bytes)
        case .string(let text):
            let bytes = [TypeByte.string] + text
            return Bound(key: Array(bytes.prefix(maximumBytes)), isExact: bytes.count <= maximumBytes)
        case .array: return Bound(key: [TypeByte.array])
        case .object: return Bound(key: [TypeByte.object])
        }
    }

    /// The first eight bytes of a value's key, as a number: of two values with different ones the lesser value has the
    /// lesser one.
    static func prefix(_ value: SortValue) -> UInt64 {
        guard case .string(let text) = value else { return prefix(bound(value).key[...]) }
        return UInt64(TypeByte.string) << 56 | prefix(text[...]) >> 8
    }

    /// The first eight bytes of a text, as a number.
    static func prefix(_ text: ArraySlice<UInt8>) -> UInt64 {
        let bytes = text.prefix(8)
        return bytes.reduce(0) { $0 << 8 | UInt64($1) } << UInt64(64 - 8 * bytes.count)
    }

    /// The least text above a key that is not longer than a key may be.
    static func successor(_ key: [UInt8]) -> [UInt8] {
        guard key.count == maximumBytes else { return key + [0] }
        // A key of this length is a string, and no byte of UTF-8 is 0xFF.
        return key.dropLast() + [key[maximumBytes - 1] + 1]
    }
}
