import CRUDModel

/// Writes a binary property list.
///
/// The size of a reference depends on the number of objects, so all objects are collected first and written by
/// ``finish(into:)``. Equal scalars, mostly names of members, are stored once, as CoreFoundation does.
struct BinaryPropertyListWriter: PropertyListSink {
    private enum Object {
        /// Encoded, at that place of `scalars`.
        case scalar(Range<Int>)
        /// What it refers to, at that place of `references`.
        case array(Range<Int>)
        /// The same, keys before values.
        case dictionary(Range<Int>)
    }

    private var objects: [Object] = []
    private var scalars: [UInt8] = []
    private var references: [UInt32] = []
    /// The number of each scalar, by its encoding.
    private var numbers: [[UInt8]: UInt32] = [:]
    /// What the containers that have begun refer to so far, the outermost first; a dictionary's keys and values in
    /// turn.
    private var pending: [UInt32] = []
    /// The containers that have begun: the number of each, and where in `pending` its references begin.
    private var levels: [(number: Int, start: Int)] = []

    private typealias Marker = BinaryPropertyList.Marker

    /// The most stored bytes that an item of `itemBytes` bytes can take.
    static func maximumBytes(ofItem itemBytes: Int) -> Int {
        // `[],` is a marker, a reference and an offset.
        64 + 8 * itemBytes
    }

    mutating func beginDictionary() { begin(.dictionary(0..<0)) }

    mutating func endDictionary() {
        let (number, start) = levels.removeLast()
        let first = references.count
        for index in stride(from: start, to: pending.count, by: 2) { references.append(pending[index]) }
        for index in stride(from: start + 1, to: pending.count, by: 2) { references.append(pending[index]) }
        objects[number] = .dictionary(first..<references.count)
        pending.removeSubrange(start...)
    }

    mutating func beginArray() { begin(.array(0..<0)) }

    mutating func endArray() {
        let (number, start) = levels.removeLast()
        let first = references.count
        references.append(contentsOf: pending[start...])
        objects[number] = .array(first..<references.count)
        pending.removeSubrange(start...)
    }

    mutating func key(_ name: Span<UInt8>) { string(name) }

    mutating func string(_ value: Span<UInt8>) {
        var encoded: [UInt8] = []
        var isASCII = true
        for index in value.indices where value[index] >= 0x80 { isASCII = false }
        if isASCII {
            encoded.append(marker: Marker.asciiString, count: value.count)
            for index in value.indices { encoded.append(value[index]) }
        } else {
            let units = Self.text(value).utf16
            encoded.append(marker: Marker.unicodeString, count: units.count)
            for unit in units { encoded.append(bigEndian: UInt64(unit), size: 2) }
        }
        add(encoded)
    }

    mutating func integer(_ value: Int128) {
        var encoded: [UInt8] = []
        encoded.append(integer: value)
        add(encoded)
    }

    mutating func real(_ value: Double) {
        var encoded = [Marker.real | 3]
        encoded.append(bigEndian: value.bitPattern, size: 8)
        add(encoded)
    }

    mutating func boolean(_ value: Bool) { add([value ? Marker.true : Marker.false]) }

    /// Appends the property list, after its last value.
    func finish(into stored: inout [UInt8]) {
        let start = stored.count
        let referenceSize = Self.size(of: objects.count)
        var offsets: [Int] = []
        offsets.reserveCapacity(objects.count)
        stored.append(contentsOf: BinaryPropertyList.header)
        for object in objects {
            offsets.append(stored.count - start)
            switch object {
            case .scalar(let range): stored.append(contentsOf: scalars[range])
            case .array(let range):
                stored.append(marker: Marker.array, count: range.count)
                for number in references[range] { stored.append(bigEndian: UInt64(number), size: referenceSize) }
            case .dictionary(let range):
                stored.append(marker: Marker.dictionary, count: range.count / 2)
                for number in references[range] { stored.append(bigEndian: UInt64(number), size: referenceSize) }
            }
        }
        let table = stored.count - start
        let offsetSize = Self.size(of: table)
        for offset in offsets { stored.append(bigEndian: UInt64(offset), size: offsetSize) }
        stored.append(contentsOf: [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)])
        for number in [objects.count, 0, table] { stored.append(bigEndian: UInt64(number), size: 8) }
    }

    // MARK: Parts

    private mutating func begin(_ object: Object) {
        pending.append(UInt32(objects.count))
        levels.append((objects.count, pending.count))
        objects.append(object)
    }

    private mutating func add(_ encoded: [UInt8]) {
        if let number = numbers[encoded] { return pending.append(number) }
        let number = UInt32(objects.count)
        numbers[encoded] = number
        objects.append(.scalar(scalars.count..<scalars.count + encoded.count))
        scalars.append(contentsOf: encoded)
        pending.append(number)
    }

    private static func text(_ utf8: Span<UInt8>) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        for index in utf8.indices { bytes.append(utf8[index]) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// How many bytes the numbers up to this one take, of 1, 2, 4 and 8.
    private static func size(of number: Int) -> Int {
        switch number {
        case ...0xFF: 1
        case ...0xFFFF: 2
        case ...0xFFFF_FFFF: 4
        default: 8
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64, size: Int) {
        for shift in stride(from: size * 8 - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    /// A marker, with a size that may not fit into its lower half.
    fileprivate mutating func append(marker: UInt8, count: Int) {
        append(marker | UInt8(Swift.min(count, 15)))
        if count >= 15 { append(integer: Int128(count)) }
    }

    /// An integer with its marker, in the form that CoreFoundation gives it.
    fileprivate mutating func append(integer value: Int128) {
        let low = UInt64(truncatingIfNeeded: value)
        let logarithm =
            switch value {
            case 0...0xFF: 0
            case 0...0xFFFF: 1
            case 0...0xFFFF_FFFF: 2
            case Int128(Int64.min)...Int128(Int64.max): 3
            default: 4
            }
        append(BinaryPropertyList.Marker.integer | UInt8(logarithm))
        if logarithm == 4 { append(bigEndian: UInt64(truncatingIfNeeded: value >> 64), size: 8) }
        append(bigEndian: low, size: Swift.min(8, 1 << logarithm))
    }
}
